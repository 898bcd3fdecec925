// What bench:ops measures: for each case the inputs as typed arrays, and a function of each library that computes it, on one thread. A library without one lacks the
// operator. All return what they computed, so that it can be compared with ours.
import { torch } from 'tensorfx'

const F = torch.nn.functional
const numbers = (shape) => ({ shape, data: torch.randn(shape).toTypedArray() })
const [BATCH, INPUT, HIDDEN] = [32, 128, 256]
const [ROWS, PIECES, WIDTH, FLAT] = [1000, 8000, 64, 200_000]

torch.manualSeed(1)
const indices = (count) => torch.randint(0, ROWS, [count]).int().toTypedArray()
const rows = indices(PIECES)
const flat = indices(FLAT)

/** Gates in PyTorch's order, input, forget, cell, output, from their sums [batch, 4 * hidden]. */
const lstmOf = ({ add, mul, sigmoid, tanh, split }, sums, c) => {
  const [i, f, g, o] = split(sums)
  const next = add(mul(sigmoid(f), c), mul(sigmoid(i), tanh(g)))
  return mul(sigmoid(o), tanh(next))
}
const ours = { add: torch.add, mul: torch.mul, sigmoid: torch.sigmoid, tanh: torch.tanh, split: (sums) => sums.chunk(4, 1) }

export const cases = [
  {
    name: 'conv_transpose',
    what: `[8, 32, 16, 16], kernel 4x4, stride 2, 16 channels`,
    inputs: { x: numbers([8, 32, 16, 16]), w: numbers([32, 16, 4, 4]) },
    ours: ({ x, w }) => F.convTranspose2d(x, w, { stride: 2, padding: 1 }),
    // tfjs wants channels last, and the kernel as [height, width, out, in].
    prepareTfjs: (tf, { x, w }) => ({ x: tf.transpose(x, [0, 2, 3, 1]), w: tf.transpose(w, [2, 3, 1, 0]) }),
    tfjs: (tf, { x, w }) => tf.conv2dTranspose(x, w, [8, 32, 32, 16], 2, 'same'),
    fromTfjs: (tf, y) => tf.transpose(y, [0, 3, 1, 2]),
    jax: (jax, { x, w }) => {
      const kernel = jax.numpy.flip(jax.numpy.flip(jax.numpy.transpose(w, [1, 0, 2, 3]), 2), 3)
      const pads = [
        [2, 2],
        [2, 2],
      ]
      return jax.lax.convGeneralDilated(x, kernel, [1, 1], pads, { lhsDilation: [2, 2] })
    },
  },
  ...[
    [{ mode: 'bilinear', alignCorners: false }, [8, 64, 32, 32], 64],
    [{ mode: 'nearest' }, [8, 64, 32, 32], 64],
    [{ mode: 'bilinear', alignCorners: false }, [8, 16, 64, 64], 24],
    [{ mode: 'bilinear', alignCorners: false }, [8, 16, 32, 32], 24],
    [{ mode: 'bilinear', alignCorners: false }, [8, 16, 32, 32], 64],
  ].flatMap(([options, shape, size]) => {
    const last = (tf, x) => tf.transpose(x, [0, 2, 3, 1])
    const first = (tf, y) => tf.transpose(y, [0, 3, 1, 2])
    const resize = (tf, x) => (options.mode === 'nearest' ? tf.image.resizeNearestNeighbor : tf.image.resizeBilinear)(x, [size, size], false, true)
    const one = {
      name: 'interpolate',
      what: `[${shape.join(', ')}] to ${size}x${size}, ${options.mode}`,
      inputs: { x: numbers(shape) },
      ours: ({ x }) => F.interpolate(x, { ...options, size }),
    }
    // tfjs resizes images with the channels last. The second of each pair of rows takes PyTorch's layout and returns it.
    return [
      { ...one, prepareTfjs: (tf, { x }) => ({ x: last(tf, x) }), tfjs: (tf, { x }) => resize(tf, x), fromTfjs: first },
      { ...one, what: `${one.what}, tfjs with transposes`, tfjs: (tf, { x }) => first(tf, resize(tf, last(tf, x))) },
    ]
  }),
  {
    name: 'scatter_add',
    what: `${PIECES} rows of ${WIDTH} added to ${ROWS}`,
    inputs: { x: numbers([PIECES, WIDTH]), rows: { shape: [PIECES], data: rows } },
    ours: ({ x, rows: index }) => torch.zeros([ROWS, WIDTH]).scatterAdd(0, index.view(-1, 1).expand([PIECES, WIDTH]), x),
    tfjs: (tf, { x, rows: index }) => tf.scatterND(tf.reshape(index, [PIECES, 1]), x, [ROWS, WIDTH]),
  },
  {
    name: 'scatter_add',
    what: `${FLAT} numbers added to ${ROWS}`,
    inputs: { x: numbers([FLAT]), at: { shape: [FLAT], data: flat } },
    ours: ({ x, at: index }) => torch.zeros([ROWS]).scatterAdd(0, index, x),
    tfjs: (tf, { x, at: index }) => tf.scatterND(tf.reshape(index, [FLAT, 1]), x, [ROWS]),
  },
  {
    name: 'gather',
    what: `${PIECES} rows of ${WIDTH} from ${ROWS}`,
    inputs: { x: numbers([ROWS, WIDTH]), rows: { shape: [PIECES], data: rows } },
    ours: ({ x, rows: index }) => x.indexSelect(0, index),
    tfjs: (tf, { x, rows: index }) => tf.gather(x, index, 0),
    jax: (jax, { x, rows: index }) => jax.numpy.take(x, index, 0),
  },
  ...[[64, 4096], [1000, 1000], [1_000_000]].map((shape) => ({
    name: 'sort',
    what: `[${shape.join(', ')}], the last dimension`,
    inputs: { x: numbers(shape) },
    ours: ({ x }) => torch.sort(x)[0],
    tfjs: (tf, { x }) => tf.neg(tf.topk(tf.neg(x), shape.at(-1)).values),
    jax: (jax, { x }) => jax.numpy.sort(x),
  })),
  {
    name: 'LSTM step',
    what: `batch ${BATCH}, ${INPUT} inputs, ${HIDDEN} hidden`,
    inputs: {
      x: numbers([BATCH, INPUT]),
      h: numbers([BATCH, HIDDEN]),
      c: numbers([BATCH, HIDDEN]),
      wx: numbers([INPUT, 4 * HIDDEN]),
      wh: numbers([HIDDEN, 4 * HIDDEN]),
    },
    ours: ({ x, h, c, wx, wh }) => lstmOf(ours, x.matmul(wx).add(h.matmul(wh)), c),
    tfjs: (tf, { x, h, c, wx, wh }) => lstmOf({ ...tf, split: (sums) => tf.split(sums, 4, 1) }, tf.add(tf.matMul(x, wx), tf.matMul(h, wh)), c),
    jax: (jax, { x, h, c, wx, wh }) => {
      const { numpy: np, nn } = jax
      // A jax-js array is used up by an operation, unless it gets a reference of its own.
      const sums = np.add(np.matmul(x, wx), np.matmul(h, wh))
      const [i, f, g, o] = np.split(sums, 4, 1)
      const next = np.add(np.multiply(nn.sigmoid(f), c), np.multiply(nn.sigmoid(i), np.tanh(g)))
      return np.multiply(nn.sigmoid(o), np.tanh(next))
    },
  },
]
