"""Steps of Gymnasium's MountainCar-v0 on written actions: python mountain_car_gymnasium.py > mountain_car_gymnasium.txt"""
import random

import gymnasium

print(f"# MountainCar-v0 of Gymnasium {gymnasium.__version__}. A line: action, position and velocity after it, 1 if terminated, 1 if cut")
print("# A line of two numbers begins an episode: position, velocity. Pushes last 1 to 12 steps (random.Random(231)); then along the velocity.")
random_pushes = random.Random(231)
for episode in range(6):
    env = gymnasium.make("MountainCar-v0")
    env.reset(seed=episode)
    car = env.unwrapped
    if episode == 4:
        car.state = (-1.19, -0.03)
    if episode == 5:
        car.state = (0.3, 0.069)
    print(*(repr(float(x)) for x in car.state))
    left = 0
    while True:
        if episode in (1, 3):
            action = 2 if car.state[1] >= 0 else 0
        else:
            if left == 0:
                action, left = random_pushes.randrange(3), random_pushes.randint(1, 12)
            left -= 1
        _, reward, terminated, truncated, _ = env.step(action)
        assert reward == -1.0
        print(action, *(repr(float(x)) for x in car.state), int(terminated), int(truncated))
        if terminated or truncated:
            break
