"""The rehearsal: what the scripted stand-in for a model says and does, turn by turn.

Its code is real code, in `guest_code/`, and runs in the sandbox. Its words come from what that code printed.
"""
