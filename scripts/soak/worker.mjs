// One worker of the soak: computes with a memory limit of its own, sends what it has, and goes on until it is done or killed.
import { parentPort, workerData } from 'node:worker_threads'

const { torch, compile } = await import(workerData.library)
torch.manualSeed(workerData.seed)
const x = torch.randn([200, 200])
const step = compile((value) => value.matmul(value).softmax(1))
let value = x
for (let i = 0; i < 20; i++) value = step(value)
const message = value.transfer()
parentPort.postMessage(message, [message.buffer])
try {
  const kept = []
  for (;;) kept.push(torch.ones([1_000_000]))
} catch (error) {
  parentPort.postMessage(error.code)
}
