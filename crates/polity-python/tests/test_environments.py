"""Environments for Gymnasium and PettingZoo, by their own checkers."""

import warnings

import numpy as np
import polity.gym
import polity.pettingzoo
import pytest
from gymnasium.utils.env_checker import check_env
from pettingzoo.test import parallel_api_test, parallel_seed_test

ENVIRONMENTS = sorted(polity.list_leaves("environments").to_polars()["name"])


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_gymnasium_accepts_every_environment(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # Numbers of the environments have no declared bounds.
        warnings.filterwarnings("ignore", message=".*infinity.*")
        # Actions with a number keep its unit, as those of Gymnasium's own environments do.
        warnings.filterwarnings("ignore", message=".*symmetric and normalized.*")
        check_env(polity.gym.make(name))


def test_an_episode_is_played(folder):
    env = polity.gym.make("matrix-game", repeat=5)
    observation, info = env.reset(seed=1)
    assert env.action_space.n == 2 and observation.tolist() == [0.0, -1.0]
    assert info["offered"] == ["cooperate", "defect"] and info["action_mask"].tolist() == [1, 1]
    assert "You are" in info["texts"]["rules"] and len(info["tables"]["payoffs"]) == 4
    steps, total, done = 0, 0.0, False
    while not done:
        observation, reward, done, truncated, info = env.step(1)
        assert observation[1] == 1.0 or done
        total, steps = total + reward, steps + 1
    assert steps == 5 and total > 0 and not truncated
    again = polity.gym.make("matrix-game", repeat=5)
    again.reset(seed=1)
    assert sum(again.step(1)[1] for _ in range(5)) == total


def test_a_vector_reward_is_in_info():
    env = polity.pettingzoo.parallel_env("item-gathering", map=["@1.2@"], steps=5)
    _, infos = env.reset(seed=1)
    assert infos["seat_0"]["objectives"] == {"item-1": 0.0, "item-2": 0.0}
    _, rewards, _, _, infos = env.step({"seat_0": 4, "seat_1": 3})
    assert rewards == {"seat_0": 1.0, "seat_1": 1.0}
    assert [infos[f"seat_{i}"]["objectives"] for i in range(2)] == [{"item-1": 1.0, "item-2": 0.0}, {"item-1": 0.0, "item-2": 1.0}]
    _, info = polity.gym.make("matrix-game").reset(seed=1)
    assert "objectives" not in info


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_an_episode_repeats_whatever_the_user_samples(name):
    env = polity.gym.make(name)
    env.action_space.seed(7)
    actions = [env.action_space.sample() for _ in range(5)]

    def play(of_user):
        env.action_space.seed(of_user)
        seen = [env.reset(seed=1)[0].tolist()]
        for action in actions:
            env.action_space.sample()
            observation, reward, done, truncated, _ = env.step(action)
            seen.append((observation.tolist(), reward, done, truncated))
            if done or truncated:
                break
        return seen

    first = play(2)
    np.testing.assert_equal(play(3), first)


def test_steps_are_cut_and_parameters_are_checked():
    env = polity.gym.make("matrix-game", repeat=5, max_steps=2)
    env.reset(seed=1)
    assert [env.step(0)[2:4] for _ in range(2)] == [(False, False), (False, True)]
    with pytest.raises(polity.InputError, match="did you mean `matrix-game`"):
        polity.gym.make("matrix-gme")
    with pytest.raises(polity.InputError, match="must be at least 1 round"):
        polity.gym.make("matrix-game", repeat=0)


def test_a_tool_is_called():
    env = polity.gym.make("shop-tools")
    _, info = env.reset(seed=1)
    action = {**env.action_space.sample(), "action": np.int64(1), "calculate.expression": "2 + 3 * 4"}
    _, _, done, _, info = env.step(action)
    assert "14" in info["texts"]["result"] and info["results"] and not done


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_pettingzoo_accepts_every_environment(name):
    parallel_api_test(polity.pettingzoo.parallel_env(name), num_cycles=60)
    parallel_seed_test(lambda: polity.pettingzoo.parallel_env(name), num_cycles=20)


def test_an_episode_begins_from_a_state_and_ends_by_its_limit_of_steps():
    env = polity.gym.make("pendulum", steps=3)
    with pytest.raises(RuntimeError, match="reset"):
        env.state()
    observation, _ = env.reset(options={"state": {"angle": 0.0, "speed": 0.0, "steps": 1}})
    assert observation.tolist() == [1.0, 0.0, 0.0]
    _, reward, ended, cut, _ = env.step(np.array([2.0]))
    assert reward == pytest.approx(-0.004) and (ended, cut) == (False, False)
    state = env.state()
    assert state["steps"] == 2 and state["speed"] == pytest.approx(0.3)
    assert env.step(np.array([0.0]))[2:4] == (False, True)
    with pytest.raises(polity.InputError, match="between -8 and 8"):
        env.reset(options={"state": {"angle": 0.0, "speed": 9.0, "steps": 0}})
    with pytest.raises(polity.InputError, match="missing field `speed`"):
        env.reset(options={"state": {"angle": 0.0}})
    with pytest.raises(polity.InputError, match="does not begin from a given state"):
        polity.gym.make("matrix-game").reset(options={"state": {"last": [None, None], "rounds": 0, "played": [[0, 0], [0, 0]], "gained": [0.0, 0.0]}})


def test_a_state_of_one_door_opens_the_other():
    env = polity.pettingzoo.parallel_env("tag")
    env.reset(seed=1)
    env.step({f"seat_{seat}": 1 for seat in range(4)})
    state = env.episode_state()
    one, _ = env.reset(options={"state": state})
    other, _ = polity.pettingzoo.parallel_env("tag").reset(options={"state": state})
    assert all((one[agent] == other[agent]).all() for agent in env.agents)
    while env.agents:
        _, _, ended, cut, _ = env.step({})
    assert cut == dict.fromkeys(env.possible_agents, True) and not any(ended.values())


def test_both_players_get_what_the_game_pays():
    env = polity.pettingzoo.parallel_env("matrix-game", repeat=2)
    env.reset(seed=3)
    cooperate, defect = 0, 1
    _, rewards, _, _, _ = env.step({"seat_0": cooperate, "seat_1": defect})
    assert rewards["seat_0"] < rewards["seat_1"]
    _, rewards, ended, _, _ = env.step({"seat_0": defect, "seat_1": defect})
    assert rewards["seat_0"] == rewards["seat_1"] and ended == {"seat_0": True, "seat_1": True} and env.agents == []


def test_a_list_of_so_many_numbers_is_a_vector():
    space = polity.gym.make("task-space", dimensions=3)
    assert space.action_space.shape == (3,) and space.action_space.high.tolist() == [1, 1, 1]
    space.reset(seed=1)
    rewards = [space.step(np.zeros(3))[1] for _ in range(3)]
    assert rewards == [0.01, 0.02, 0.03]
