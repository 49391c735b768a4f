"""Run code in a sandbox, and look at its result.

It prints:

    ok hello 42
    error NameError: name 'kept' is not defined
    timeout
    result.csv b'a,b\\n'
"""

from wcpod import Limits, Sandbox

with Sandbox(limits=Limits(seconds=5.0)) as sandbox:
    result = sandbox.run("kept = 'hello'\nprint(kept)\n6 * 7")
    print(result.kind, result.stdout.strip(), result.value)

    # Every run starts from the same clean snapshot.
    result = sandbox.run("print(kept)")
    print(result.kind, result.stderr.splitlines()[-1])

    result = sandbox.run("while True: pass", limits=Limits(seconds=0.5))
    print(result.kind)

    # Files go in below /input, and come out below /output.
    code = "from pathlib import Path\nPath('/output/result.csv').write_bytes(Path('/input/data').read_bytes())"
    result = sandbox.run(code, inputs={"data": b"a,b\n"})
    for name, content in result.files.items():
        print(name, content)
