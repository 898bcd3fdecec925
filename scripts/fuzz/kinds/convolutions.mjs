// Convolutions with as many channels as schedules and Winograd's algorithm take, and what stands around them in networks. Only these statements use the images that they make: others
// divide by numbers that are near 0, say, and then two right ways to add up are far apart.
import { line } from '../program.mjs'

const F = 'torch.nn.functional'
/** Elements that an image may have: other kinds of programs have fewer. */
const MOST = 6000

const CHANNELS = [16, 16, 24, 32, 20, 17, 4]
const PLANES = [
  [8, 8],
  [4, 4],
  [7, 7],
  [6, 9],
  [5, 12],
  [9, 4],
]
/** Windows by how likely they are. */
const WINDOWS = [
  { kernel: 3, padding: 1 },
  { kernel: 3, padding: 1 },
  { kernel: 3, padding: 0 },
  { kernel: 3, padding: 2 },
  { kernel: 3, padding: 1, stride: 2 },
  { kernel: 3, padding: 0, stride: 2 },
  { kernel: 1, padding: 0 },
  { kernel: 1, padding: 0, stride: 2 },
  { kernel: 3, padding: 2, dilation: 2 },
  { kernel: 2, padding: 1, stride: 2 },
  { kernel: 5, padding: 2 },
  { kernel: [1, 3], padding: [0, 1] },
  { kernel: [3, 1], padding: [1, 0], stride: [1, 2] },
]

const listOf = (value) => (Array.isArray(value) ? `[${value.join(', ')}]` : String(value))

/** Random numbers of features and groups for an image of so many channels. */
function featuresFor(random, channels) {
  const features = random.pick(CHANNELS)
  if (random.chance(0.75)) return { features, groups: 1 }
  const groups = random.pick([2, 4, channels])
  return channels % groups === 0 ? { features: groups * (1 + random.int(groups === channels ? 2 : 8)), groups } : { features, groups: 1 }
}

/** What is done to the result of a convolution, as an expression. */
function after(random, made, features) {
  const list = [
    (x) => `${F}.relu(${x})`,
    (x) => `${F}.gelu(${x})`,
    (x) => `${x}.mul(0.5).add(1)`,
    (x) => `${x}.tanh()`,
    (x) => `${F}.maxPool2d(${x}, 2, 1)`,
    (x) => `${F}.avgPool2d(${x}, 2)`,
    (x) => `${x}.add(data([${features}, 1, 1], ${random.int(99)}))`,
    (x) => `${F}.batchNorm(${x}, data([${features}], 1), data([${features}], 2).abs().add(0.5), null, null, false)`,
    (x) => `${F}.batchNorm(${x}, null, null, data([${features}], 3), data([${features}], 4), true)`,
    (x) => `${x}.mean([2, 3])`,
  ]
  return Array.from({ length: random.int(3) }, () => random.pick(list)).reduce((x, step) => step(x), made)
}

/** An image of 4 dimensions in scope, or new data, as an expression. */
function imageFor(w, channels = null) {
  const { random } = w
  const fits = (name) =>
    w.shape(name).length === 4 && w.isFloat(name) && w.value(name).numel >= 100 && (channels === null || w.shape(name)[1] === channels)
  const known = [...w.apart, ...w.tensors.filter((name) => w.program.params.includes(name))].filter((name) => fits(name))
  if (known.length > 0 && random.chance(0.6)) {
    const image = random.pick(known)
    return { image, channels: w.shape(image)[1], operands: [image] }
  }
  const many = channels ?? random.pick(CHANNELS)
  const [height, width] = random.pick(PLANES)
  const made = `data([${1 + random.int(3)}, ${many}, ${height}, ${width}], ${random.int(999)})`
  const x = w.float()
  // In a layout of its own, now and then. The gradient of the number that is added would be a sum of everything, in which most cancels.
  const image = random.pick([made, made, `${made}.transpose(2, 3)`, `${made}.contiguous({ memoryFormat: 'channels_last' })`])
  return { image: x === undefined ? image : `${image}.add(${x}.detach().flatten()[0].tanh().mul(0.125))`, channels: many, operands: [] }
}

/** Defines an image that only convolutions use; returns whether it could. */
function define(w, expression, operands) {
  const name = w.define(expression, operands)
  if (name === null) return false
  w.tensors.pop()
  w.apart.push(name)
  return true
}

/** One convolution of an image, as an expression, with weights that are data. */
function convolution(w, { image, channels }) {
  const { random } = w
  const { features, groups } = featuresFor(random, channels)
  const { kernel, padding, stride = 1, dilation = 1 } = random.pick(WINDOWS)
  const [kh, kw] = Array.isArray(kernel) ? kernel : [kernel, kernel]
  const weight = `data([${features}, ${channels / groups}, ${kh}, ${kw}], ${random.int(999)}).mul(0.1)`
  const bias = random.chance(0.4) ? `data([${features}], ${random.int(99)})` : 'null'
  return { made: `${F}.conv2d(${image}, ${weight}, ${bias}, ${[stride, padding, dilation].map(listOf).join(', ')}, ${groups})`, features }
}

/** A small network of `channels` channels, as an expression: its parameters are trained. */
function networkOf(random, channels) {
  const width = random.pick(CHANNELS)
  const { kernel, padding, stride = 1, dilation = 1 } = random.pick(WINDOWS)
  const between = random.pick([
    `new nn.BatchNorm2d(${width}), new nn.ReLU()`,
    `new nn.BatchNorm2d(${width}), new nn.SiLU()`,
    'new nn.ReLU()',
    'new nn.Tanh()',
    'new nn.Identity()',
  ])
  // A batch norm takes a bias away again: its gradient would be rounding alone.
  const bias = !between.includes('BatchNorm') && random.chance(0.5)
  const options = `{ stride: ${listOf(stride)}, padding: ${listOf(padding)}, dilation: ${listOf(dilation)}, bias: ${bias} }`
  return `new nn.Sequential(new nn.Conv2d(${channels}, ${width}, ${listOf(kernel)}, ${options}), ${between}, new nn.Conv2d(${width}, ${channels}, 3, { padding: 1 }))`
}

export const convolutions = {
  setup(w) {
    const { random, state } = w
    w.most = MOST
    const channels = random.pick(CHANNELS)
    const code = `(torch.manualSeed(5), ${networkOf(random, channels)})`
    state.network = { name: w.name('network'), channels }
    w.each(state.network.name, code)
    w.push(line(`const ${state.network.name} = ${code}`))
  },
  tensors(w, list) {
    const [first] = list
    const { random } = w
    if (first === undefined || random.chance(0.3)) return
    const [height, width] = random.pick(PLANES)
    first.shape = [1 + random.int(2), random.chance(0.5) ? w.state.network.channels : random.pick(CHANNELS), height, width]
    first.dtype = undefined
    first.grad = random.chance(0.6)
  },
  write(w) {
    const { random, state } = w
    const { name, channels } = state.network
    return random.pick([
      () => {
        const of = imageFor(w)
        const { made, features } = convolution(w, of)
        return define(w, after(random, made, features), of.operands)
      },
      () => {
        const of = imageFor(w)
        const first = convolution(w, of)
        const second = convolution(w, { image: `${F}.relu(${first.made})`, channels: first.features })
        return define(w, after(random, second.made, second.features), of.operands)
      },
      // A residual block.
      () => {
        const { image, operands } = imageFor(w, channels)
        return define(w, `((x) => x.add(${name}(x)))(${image})`, operands) || define(w, `${name}(${image})`, operands)
      },
      () => {
        const { image, operands } = imageFor(w, channels)
        return define(w, `${name}(${image}).square().mean()`, operands)
      },
      () => {
        const { image, channels: from, operands } = imageFor(w)
        const to = random.pick(CHANNELS)
        const weight = `data([${from}, ${to}, 3, 3], ${random.int(999)}).mul(0.1)`
        return define(w, `${F}.convTranspose2d(${image}, ${weight}, null, ${1 + random.int(2)}, 1)`, operands)
      },
      () => !w.traced && w.statement(`${name}.${random.pick(['train()', 'eval()', 'zeroGrad()'])}`),
    ])()
  },
  finish(w) {
    for (const name of w.apart) w.declare(name)
  },
  after(w) {
    const { name } = w.state.network
    if (w.traced) return
    w.push(line(`for (const t of [result].flat()) if (t instanceof Tensor && t.requiresGrad) attempt(() => t.square().mean().backward(), () => [])`))
    w.push(line(`note('gradients of the network', [...${name}.parameters()].map((p) => p.grad))`))
    w.push(line(`note('buffers of the network', [...${name}.buffers()])`))
  },
}
