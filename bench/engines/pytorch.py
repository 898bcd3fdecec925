# PyTorch for bench:engines, on as many threads as the argument says. Reads a JSON message a line, and answers each with a line: {"setup", "run", "inputs"} prepares a row,
# {"times": n} runs it n times and answers with the seconds.
import json
import sys
import time

import models
import torch
import torch.nn.functional as F

torch.set_num_threads(int(sys.argv[1]))
torch.set_grad_enabled(False)


def answer(value):
    print(json.dumps(value), flush=True)


def prepared(row):
    scope = {"torch": torch, "F": F, "models": models}
    for name, of in row["inputs"].items():
        scope[name] = torch.randint(of["below"], of["shape"]) if "below" in of else torch.randn(of["shape"])
    exec(row["setup"], scope)
    return eval("lambda: " + row["run"], scope)


answer(torch.__version__)
run = None
for line in sys.stdin:
    message = json.loads(line)
    if "run" in message:
        run = prepared(message)
        answer(True)
    else:
        start = time.perf_counter()
        for _ in range(message["times"]):
            run()
        answer(time.perf_counter() - start)
