// Memory without disposal: many additions of 1 MB tensors in one synchronous loop, whose results nobody keeps. Prints the highest resident size.
// node bench/memory.mjs [additions]
import './oneThread.mjs'
import { torch } from 'tensorfx'

const additions = Number(process.argv[2] ?? 100_000)
const a = torch.ones([512, 512])
const b = torch.ones([512, 512])
let peak = 0
const start = performance.now()
torch.noGrad(() => {
  for (let i = 0; i < additions; i++) {
    a.add(b)
    if (i % 500 === 0) peak = Math.max(peak, process.memoryUsage.rss())
  }
})
const seconds = (performance.now() - start) / 1000
const gigabytes = peak / 2 ** 30
console.log(
  `${additions} additions of 1 MB in ${seconds.toFixed(1)} s, at most ${gigabytes.toFixed(2)} GiB resident (${gigabytes < 1.5 ? 'meets' : 'MISSES'} 1.5 GiB)`,
)
if (gigabytes >= 1.5) process.exitCode = 1
