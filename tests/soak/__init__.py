"""Long runs on real hosts: what a test shows once, hundreds of times. `python -m tests.soak`"""
