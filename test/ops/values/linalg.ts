// Matrix products, and attention, which consists of them.
import { Plain, build, ints, sample, sumOf, t } from '../plain.ts'
import type { ValueCases } from '../valueCases.ts'
import { softmaxOf } from './activation.ts'

const a = sample([2, 3], 1)
const b = sample([3, 4], 2)
const v = sample([3], 3)
const wide = sample([17, 33], 4)
const tall = sample([33, 9], 5)

const mm = (p: Plain, q: Plain): Plain => build([p.shape[0] ?? 0, q.shape[1] ?? 0], (i, j) => sumOf(p.shape[1] ?? 0, (k) => p.at(i, k) * q.at(k, j)))
const bmm = (p: Plain, q: Plain): Plain =>
  build([Math.max(p.shape[0] ?? 0, q.shape[0] ?? 0), p.shape[1] ?? 0, q.shape[2] ?? 0], (n, i, j) =>
    sumOf(p.shape[2] ?? 0, (k) => p.at(n, i, k) * q.at(n, k, j)),
  )
const dot = (p: Plain, q: Plain): Plain => t(sumOf(p.data.length, (i) => p.at(i) * q.at(i)))
const linear = (x: Plain, w: Plain, bias?: Plain | null): Plain => {
  const [inner = 0] = x.shape.slice(-1)
  return build([...x.shape.slice(0, -1), w.shape[0] ?? 0], (...at) => {
    const [o = 0] = at.slice(-1)
    return sumOf(inner, (k) => x.at(...at.slice(0, -1), k) * w.at(o, k)) + (bias instanceof Plain ? bias.at(o) : 0)
  })
}

interface Attention {
  readonly allowed?: (row: number, column: number) => boolean
  readonly added?: Plain
  readonly scale?: number
}
/** softmax(q @ k^T * scale + mask) @ v */
function attention(q: Plain, k: Plain, values: Plain, { allowed = () => true, added, scale }: Attention = {}): Plain {
  const [batch = 0, rows = 0, width = 0] = q.shape
  const columns = k.shape[1] ?? 0
  const scores = build([batch, rows, columns], (n, i, j) =>
    allowed(i, j) ? sumOf(width, (e) => q.at(n, i, e) * k.at(n, j, e)) * (scale ?? 1 / Math.sqrt(width)) + (added?.at(n, i, j) ?? 0) : -Infinity,
  )
  return bmm(softmaxOf(scores, 2), values)
}
const [q, k, values] = [sample([2, 3, 4], 6), sample([2, 5, 4], 7), sample([2, 5, 2], 8)]
const boolMask = t([
  [true, false, true, true, false],
  [false, true, true, false, true],
  [true, true, true, true, true],
])
const floatMask = sample([3, 5], 9)

export default {
  'torch.mm': [
    { args: [a, b], gives: mm },
    { args: [wide, tall], gives: mm, tolerance: 2e-5 },
    {
      args: [
        ints([
          [1, 2],
          [3, 4],
        ]),
        ints([[5], [6]]),
      ],
      gives: ints([[17], [39]]),
    },
    { args: [sample([2, 0], 1), sample([0, 3], 1)], gives: build([2, 3], () => 0) },
  ],
  'torch.bmm': [
    { args: [sample([2, 2, 3], 1), sample([2, 3, 4], 2)], gives: bmm },
    { args: [ints([[[1, 2]]]), ints([[[3], [4]]])], gives: ints([[[11]]]) },
  ],
  'torch.nn.functional.linear': [
    { args: [sample([2, 3], 1), sample([4, 3], 2), sample([4], 3)], gives: linear },
    { args: [sample([2, 2, 3], 1), sample([4, 3], 2)], gives: linear },
    { args: [v, sample([4, 3], 2), null], gives: linear },
    { args: [sample([0, 3], 1), sample([4, 3], 2)], gives: build([0, 4], () => 0) },
  ],
  'torch.addmm': [
    { args: [sample([2, 4], 6), a, b], gives: (c: Plain, p: Plain, r: Plain) => mm(p, r).map((value, i) => value + (c.data[i] ?? NaN)) },
    { args: [sample([4], 6), a, b], gives: (c: Plain, p: Plain, r: Plain) => mm(p, r).map((value, i) => value + c.at(i % 4)) },
    {
      args: [sample([2, 1], 6), a, b, { beta: 0.5, alpha: 2 }],
      gives: (c: Plain, p: Plain, r: Plain) => mm(p, r).map((value, i) => 2 * value + 0.5 * c.at(Math.floor(i / 4), 0)),
    },
  ],
  'torch.baddbmm': [
    {
      args: [sample([3, 2, 4], 6), sample([3, 2, 3], 1), sample([3, 3, 4], 2)],
      gives: (c: Plain, p: Plain, r: Plain) => bmm(p, r).map((value, i) => (c.data[i] ?? NaN) + value),
    },
    {
      args: [sample([2, 4], 6), sample([3, 2, 3], 1), sample([3, 3, 4], 2), { beta: 2, alpha: -1 }],
      gives: (c: Plain, p: Plain, r: Plain) => bmm(p, r).map((value, i) => 2 * (c.data[i % 8] ?? NaN) - value),
    },
  ],
  'torch.matmul': [
    { args: [a, b], gives: mm },
    { args: [v, v], gives: dot },
    { args: [a, v], gives: (p: Plain, r: Plain) => mm(p, r.reshape(3, 1)).reshape(2) },
    { args: [v, b], gives: (p: Plain, r: Plain) => mm(p.reshape(1, 3), r).reshape(4) },
    { args: [sample([5, 2, 3], 1), b], gives: bmm2 },
    { args: [sample([2, 1, 2, 3], 1), sample([3, 3, 2], 2)], gives: broadcastProduct },
    { args: [v, sample([2, 3, 2], 2)], gives: (p: Plain, r: Plain) => build([2, 2], (n, j) => sumOf(3, (i) => p.at(i) * r.at(n, i, j))) },
  ],
  'torch.mv': [{ args: [a, v], gives: (p: Plain, r: Plain) => mm(p, r.reshape(3, 1)).reshape(2) }],
  'torch.dot': [
    { args: [v, sample([3], 5)], gives: dot },
    { args: [ints([1, 2]), ints([3, 4])], gives: ints(11) },
  ],
  'torch.outer': [{ args: [v, sample([2], 5)], gives: (p: Plain, r: Plain) => build([3, 2], (i, j) => p.at(i) * r.at(j)) }],
  'torch.einsum': [
    { args: ['ij,jk->ik', a, b], gives: (_: string, p: Plain, r: Plain) => mm(p, r) },
    { args: ['ij,jk', [a, b]], gives: (_: string, [p, r]: [Plain, Plain]) => mm(p, r) },
    { args: ['ij->ji', a], gives: (_: string, p: Plain) => build([3, 2], (i, j) => p.at(j, i)) },
    { args: ['ii', sample([3, 3], 1)], gives: (_: string, p: Plain) => t(sumOf(3, (i) => p.at(i, i))) },
    {
      args: ['bij,bjk->bk', sample([2, 2, 3], 1), sample([2, 3, 4], 2)],
      gives: (_: string, p: Plain, r: Plain) => build([2, 4], (n, j) => sumOf(2, (i) => bmm(p, r).at(n, i, j))),
    },
    {
      args: ['...i,...i->...', sample([2, 3], 1), v],
      gives: (_: string, p: Plain, r: Plain) => build([2], (i) => sumOf(3, (j) => p.at(i, j) * r.at(j))),
    },
    {
      args: ['i,j,k->kij', sample([2], 1), sample([3], 2), sample([2], 3)],
      gives: (_: string, p: Plain, r: Plain, s: Plain) => build([2, 2, 3], (z, x, y) => p.at(x) * r.at(y) * s.at(z)),
    },
  ],
  'torch.nn.functional.scaled_dot_product_attention': [
    { args: [q, k, values], gives: attention },
    {
      args: [q, q, sample([2, 3, 2], 9), { isCausal: true }],
      gives: (x: Plain, y: Plain, z: Plain) => attention(x, y, z, { allowed: (i, j) => j <= i }),
    },
    {
      args: [q, k, values, { attnMask: boolMask }],
      gives: (x: Plain, y: Plain, z: Plain) => attention(x, y, z, { allowed: (i, j) => boolMask.at(i, j) !== 0 }),
    },
    {
      args: [q, k, values, floatMask, 0, false, { scale: 0.3 }],
      gives: (x: Plain, y: Plain, z: Plain, mask: Plain) => attention(x, y, z, { added: mask, scale: 0.3 }),
    },
  ],
} satisfies ValueCases

/** A batch of matrices times one matrix. */
function bmm2(p: Plain, r: Plain): Plain {
  return bmm(p, r.reshape(1, ...r.shape))
}

function broadcastProduct(p: Plain, r: Plain): Plain {
  return build([2, 3, 2, 2], (n, m, i, j) => sumOf(3, (x) => p.at(n, 0, i, x) * r.at(m, x, j)))
}
