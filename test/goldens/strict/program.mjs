// Drawn products and convolutions, for which `digests.json` has the bits that commit 0ab0f8c computed, the last one before kernels were schedules: eager and compiled, with gradients.
// Strict code still computes them. `node test/goldens/strict/record.mjs CHECKOUT`, with a build in the checkout's dist, records them again.
import { createHash } from 'node:crypto'

/** Draws from a seed (mulberry32). */
function drawsFrom(seed) {
  let state = seed >>> 0
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = Math.imul(state ^ (state >>> 15), state | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }
  const int = (below) => Math.floor(next() * below)
  return { next, int, pick: (values) => values[int(values.length)] }
}

const SIZES = [1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 31, 33, 64, 70]
const countOf = (shape) => shape.reduce((product, size) => product * size, 1)

/** A product or a convolution: shapes of its operands, and what it computes from them. */
const kinds = {
  mm: ({ pick }) => {
    const [m, k, n] = [pick(SIZES), pick([...SIZES, 130, 1100]), pick(SIZES)]
    return { shapes: [[m, k], [k, n]], run: (_, x, y) => x.mm(y) }
  },
  bmm: ({ pick }) => {
    const [b, m, k, n] = [pick([1, 2, 3]), pick(SIZES), pick(SIZES), pick(SIZES)]
    return { shapes: [[b, m, k], [b, k, n]], run: (_, x, y) => x.bmm(y) }
  },
  mv: ({ pick }) => {
    const [m, k] = [pick(SIZES), pick([...SIZES, 130])]
    return { shapes: [[m, k], [k]], run: (_, x, y) => x.mv(y) }
  },
  linear: ({ pick }) => {
    const [m, k, n] = [pick(SIZES), pick(SIZES), pick(SIZES)]
    return { shapes: [[2, m, k], [n, k], [n]], run: (F, x, w, b) => F.linear(x, w, b) }
  },
  conv2d: ({ pick }) => {
    const groups = pick([1, 1, 1, 2, 4])
    const [inside, outside, kernel] = [pick([1, 3, 4, 8]), pick([1, 2, 5, 8, 16]), pick([1, 2, 3, 5])]
    const options = { stride: pick([1, 1, 2]), padding: pick([0, 1, 2]), dilation: pick([1, 1, 2]), groups }
    const [height, width] = [9 + pick([0, 1, 4]), 9 + pick([0, 2, 3])]
    return {
      shapes: [[pick([1, 2]), inside * groups, height, width], [outside * groups, inside, kernel, kernel], [outside * groups]],
      run: (F, x, w, b) => F.conv2d(x, w, b, options),
    }
  },
}

/** How many cases there are of each kind. */
const CASES = 24

/**
 * A tensor of drawn numbers with all bits of a float32; every third one lies transposed in memory. Not windows of convolutions: that commit's compiled code left them to eager kernels, so
 * that the gradient of an image was another sum.
 */
function tensorOf(torch, { next, int }, shape, isWindow) {
  const values = Array.from({ length: countOf(shape) }, () => Math.fround(4 * next() - 2))
  const tensor = torch.tensor(values, { dtype: 'float32' }).reshape(shape)
  return shape.length > 1 && !isWindow && int(3) === 0 ? tensor.transpose(-1, -2).contiguous().transpose(-1, -2) : tensor
}

/** The first 48 bits of a tensor's digest. A zero counts as positive. */
const digestOf = (tensor) =>
  createHash('sha256')
    .update(new Uint8Array(Float32Array.from(tensor.contiguous().toTypedArray(), (value) => value + 0).buffer))
    .digest('hex')
    .slice(0, 12)

/** The digests of each case, by its name: the result and the gradients of its operands, eager and then compiled. `compiled` makes a compiled function of one. */
export function digestsOf({ torch, compiled }, isChosen = () => true) {
  const found = {}
  for (const [kind, draw] of Object.entries(kinds)) {
    for (let i = 0; i < CASES; i++) {
      const name = `${kind} ${i}`
      const draws = drawsFrom(i * 7919 + kind.length)
      const { shapes, run } = draw(draws)
      const operands = shapes.map((shape, at) => tensorOf(torch, draws, shape, kind === 'conv2d' && at === 1))
      if (!isChosen(name)) continue
      const forward = (...args) => run(torch.nn.functional, ...args)
      found[name] = [forward, compiled(forward)].map((f) => {
        const leaves = operands.map((operand) => operand.detach().requiresGrad_())
        const out = f(...leaves)
        // The weights of the sum are exact, and differ from element to element.
        const weights = torch.tensor(Array.from({ length: out.numel }, (_, at) => ((at % 7) - 3) / 8), { dtype: 'float32' }).reshape(out.shape)
        out.mul(weights).sum().backward()
        return [out.detach(), ...leaves.map((leaf) => leaf.grad)].map(digestOf).join(' ')
      })
    }
  }
  return found
}
