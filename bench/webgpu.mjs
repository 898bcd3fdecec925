// npm run bench:webgpu: kernels and models on the GPU. Times are those that the GPU writes itself, the best of some calls; a call's own time has the copies to the GPU and back in it, too.
//
//   --large      the sizes for a GPU, on a driver that computes on the CPU, too
//   --only a,b   rows whose names contain one of these
import { existsSync } from 'node:fs'
import { parseArgs } from 'node:util'

// Vulkan's loader reads the name of its driver when it is first used. Chromium brings a driver for the CPU.
const SOFTWARE = '/usr/lib/chromium/vk_swiftshader_icd.json'
const isSoftware = process.env.VK_ICD_FILENAMES === undefined && existsSync(SOFTWARE)
if (isSoftware) process.env.VK_ICD_FILENAMES = SOFTWARE

const { values } = parseArgs({ options: { large: { type: 'boolean', default: false }, only: { type: 'string', default: '' } } })
const { compile, nn, optim, torch } = await import('../dist/index.js')
const { GPT } = await import('../examples/gpt/model.mjs')
const { ResNet18 } = await import('../examples/resnet18/model.mjs')
const { description, init, profile, stats } = await import('../dist/entries/webgpu.js')

await init()
const isLarge = values.large || !/swiftshader|llvmpipe|cpu/i.test(`${description()} ${process.env.VK_ICD_FILENAMES ?? ''}`)
console.log(`${description()}, ${isLarge ? 'sizes for a GPU' : 'small sizes: this driver computes on the CPU (--large for those of a GPU)'}\n`)
torch.manualSeed(0)

const n = isLarge ? 1024 : 128
const many = isLarge ? 2 ** 22 : 2 ** 16
const [rows, width] = isLarge ? [4096, 1024] : [256, 256]
const image = isLarge ? [16, 64, 56] : [1, 8, 16]
const float = 4

/** A training step of a model, compiled whole. */
function step(model, input, target, lossOf) {
  const rule = new optim.Adam(model.parameters(), { lr: 1e-3 })
  const run = compile(
    (x, y) => {
      rule.zeroGrad()
      const loss = lossOf(model.call(x), y)
      loss.backward()
      rule.step()
      return loss.detach()
    },
    { backend: 'webgpu' },
  )
  return () => run(input, target)
}

const kernel = (fn, inputs, work) => ({
  ...work,
  make: () => {
    const f = compile(fn, { backend: 'webgpu' })
    return () => f(...inputs)
  },
})
const [batch, channels, side] = image
const cases = {
  'x + y': kernel((x, y) => x.add(y), [torch.randn([many]), torch.randn([many])], { bytes: 3 * float * many }),
  gelu: kernel((x) => nn.functional.gelu(x), [torch.randn([many])], { bytes: 2 * float * many }),
  transpose: kernel((x) => x.t().contiguous(), [torch.randn([rows, width])], { bytes: 2 * float * rows * width }),
  'sum of all': kernel((x) => x.sum(), [torch.randn([many])], { bytes: float * many }),
  softmax: kernel((x) => torch.softmax(x, 1), [torch.randn([rows, width])], { bytes: 2 * float * rows * width }),
  'layer norm': kernel((x) => nn.functional.layerNorm(x, [width]), [torch.randn([rows, width])], { bytes: 2 * float * rows * width }),
  [`product ${n}`]: kernel((a, b) => a.matmul(b), [torch.randn([n, n]), torch.randn([n, n])], { flops: 2 * n ** 3, bytes: 3 * float * n * n }),
  'convolution 3x3': kernel(
    (x, w) => nn.functional.conv2d(x, w, null, { padding: 1 }),
    [torch.randn([batch, channels, side, side]), torch.randn([channels, channels, 3, 3])],
    { flops: 2 * batch * channels * channels * 9 * side * side },
  ),
  cumsum: kernel((x) => x.cumsum(1), [torch.randn([rows, width])], { bytes: 2 * float * rows * width }),
  'ResNet-18 forward': {
    make: () => {
      const model = new ResNet18({ width: isLarge ? 64 : 8, classes: 10 }).eval()
      const f = compile((x) => model.call(x), { backend: 'webgpu' })
      const x = torch.randn(isLarge ? [8, 3, 224, 224] : [1, 3, 32, 32])
      return () => torch.noGrad(() => f(x))
    },
  },
  'GPT, a step with Adam': {
    make: () => {
      const [length, vocabulary] = isLarge ? [256, 4096] : [16, 64]
      const model = new GPT({ vocabulary, context: length, width: isLarge ? 384 : 32, heads: 2, layers: isLarge ? 6 : 2 })
      const ids = () => torch.randint(0, vocabulary, [2, length])
      return step(model, ids(), ids(), (logits, y) => nn.functional.crossEntropy(logits.reshape([-1, vocabulary]), y.reshape([-1])))
    },
  },
}

const ROUNDS = 5
const number = (value, digits = 3) => (value === null || !Number.isFinite(value) ? '' : value.toPrecision(digits))
const columns = [24, 11, 11, 11, 10, 10]
const line = (cells) => console.log(cells.map((cell, i) => (i === 0 ? String(cell).padEnd(columns[i]) : String(cell).padStart(columns[i]))).join(''))
line(['', 'dispatches', 'ms on GPU', 'ms a call', 'GFLOP/s', 'GB/s'])

const wanted = values.only === '' ? null : values.only.split(',')
const slow = []
for (const [name, { make, flops = null, bytes = null }] of Object.entries(cases)) {
  if (wanted !== null && !wanted.some((part) => name.includes(part))) continue
  const call = make()
  // Shaders compile.
  for (let i = 0; i < 2; i++) await call().toTypedArrayAsync()
  let [best, bestCall, times] = [Infinity, Infinity, []]
  const before = stats().dispatches
  for (let i = 0; i < ROUNDS; i++) {
    const began = performance.now()
    await call().toTypedArrayAsync()
    bestCall = Math.min(bestCall, performance.now() - began)
  }
  const dispatches = (stats().dispatches - before) / ROUNDS
  for (let i = 0; i < ROUNDS; i++) {
    const { kernels } = await profile(async () => call().toTypedArrayAsync())
    const total = kernels.reduce((sum, { milliseconds }) => sum + milliseconds, 0)
    if (total < best) [best, times] = [total, kernels]
  }
  const perSecond = (count) => (count === null ? null : count / best / 1e6)
  line([name, dispatches, number(best), number(bestCall), number(perSecond(flops)), number(perSecond(bytes))])
  if (flops === null && bytes === null) slow.push([name, best, times])
}

for (const [name, total, kernels] of slow) {
  console.log(`\n${name}: the kernels that take longest, of ${kernels.length}`)
  for (const { name: kernelName, nodes, calls, threads, milliseconds } of kernels.slice(0, 8))
    console.log(
      `  ${number(milliseconds).padStart(8)} ms ${((100 * milliseconds) / total).toFixed(0).padStart(3)}%  ${String(calls).padStart(3)} x ${String(threads).padStart(8)} threads  ${kernelName} (${nodes.slice(0, 4).join(', ')}${nodes.length > 4 ? ', …' : ''})`,
    )
}
process.exit(0)
