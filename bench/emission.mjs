// node bench/emission.mjs: how long emitting a kernel takes: every kernel of a ResNet-18, forward and backward, at the moment at which the program compiles it. Run
// `npm run build` first. Times are CPU time of the process, so that other programs count little: with the engine's compiler and garbage collector, which run beside the emitter.
import './oneThread.mjs'
import { installVerifier } from '../dist/kernels/run/compile.js'
import { emitKernel } from '../dist/kernels/emit/emit.js'
import { compile, nn, torch } from 'tensorfx'
import { ResNet18 } from '../examples/resnet18/model.mjs'

/** Emits a kernel, and says what that took. */
function emission(kernel) {
  const start = process.cpuUsage()
  const { length } = emitKernel(kernel)
  const { user, system } = process.cpuUsage(start)
  return { name: kernel.name, ms: (user + system) / 1000, bytes: length }
}

// compile installs a verifier of its own at its first call.
compile((x) => x.relu())(torch.ones([4]))
const kernels = []
const first = []
installVerifier((kernel) => {
  kernels.push(kernel)
  first.push(emission(kernel))
})
const model = new ResNet18({ classes: 10 })
nn.functional.crossEntropy(compile(model)(torch.randn([4, 3, 64, 64])), torch.randint(0, 10, [4])).backward()
installVerifier(() => {})

/** Once the engine has compiled the emitter: the fastest of five. */
const later = kernels.map((kernel) => Array.from({ length: 5 }, () => emission(kernel)).reduce((a, b) => (a.ms <= b.ms ? a : b)))
const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1]
console.log(`${kernels.length} kernels, ${first.reduce((sum, { bytes }) => sum + bytes, 0)} bytes`)
for (const [what, times] of Object.entries({ 'as the program compiles': first, 'once more, fastest of five': later })) {
  const all = times.map(({ ms }) => ms)
  console.log(`${what}: median ${median(all).toFixed(3)} ms, all ${all.reduce((sum, ms) => sum + ms, 0).toFixed(1)} ms`)
}
for (const { name, ms, bytes } of later.toSorted((a, b) => b.ms - a.ms).slice(0, 8)) console.log(`  ${ms.toFixed(2)} ms  ${bytes} bytes  ${name}`)
