// Muon: steps against the formula of torch.optim.Muon, written with plain numbers, and its options.
import { expect, test } from 'vitest'
import { torch } from 'tensorfx'
import { Muon } from 'tensorfx/optim'

type Matrix = readonly (readonly number[])[]

/** The nearest bfloat16; of two that are as near, the even one. */
function bfloat16(value: number): number {
  const view = new DataView(new ArrayBuffer(4))
  view.setFloat32(0, value)
  const bits = view.getUint32(0)
  view.setUint32(0, ((bits + 0x7fff + ((bits >>> 16) & 1)) & 0xffff0000) >>> 0)
  return view.getFloat32(0)
}

const zip = (f: (a: number, b: number) => number, a: Matrix, b: Matrix): Matrix => a.map((row, i) => row.map((x, j) => f(x, b[i]?.[j] ?? NaN)))
const turn = (a: Matrix): Matrix => (a[0] ?? []).map((_, j) => a.map((row) => row[j] ?? NaN))
const product = (a: Matrix, b: Matrix): Matrix => a.map((row) => turn(b).map((column) => row.reduce((sum, x, k) => sum + x * (column[k] ?? NaN), 0)))
const cut = (a: Matrix): Matrix => a.map((row) => row.map(bfloat16))

/** PyTorch's _zeropower_via_newtonschulz. */
function orthogonal(grad: Matrix, steps: number): Matrix {
  const [a, b, c] = [3.4445, -4.775, 2.0315]
  const tall = grad.length > (grad[0]?.length ?? 0)
  let x = cut(tall ? turn(grad) : grad)
  const norm = Math.max(bfloat16(Math.sqrt(x.flat().reduce((sum, v) => sum + v * v, 0))), 1e-7)
  x = cut(x.map((row) => row.map((v) => v / norm)))
  for (let i = 0; i < steps; i++) {
    const gram = cut(product(x, turn(x)))
    const update = cut(zip((g, p) => b * g + c * p, gram, product(gram, gram)))
    x = cut(zip((v, p) => a * v + p, x, product(update, x)))
  }
  return tall ? turn(x) : x
}

const START: Matrix = [
  [1, -2, 0.5],
  [0.25, 3, -1],
]
const GRADS: readonly Matrix[] = [
  [
    [0.3, -0.7, 1.1],
    [0.9, 0.2, -0.4],
  ],
  [
    [-0.5, 0.1, 0.8],
    [0.6, -1.2, 0.3],
  ],
]

test.each([
  { name: 'wide matrices, with the defaults', tall: false, options: {}, nesterov: true, scale: 1 },
  { name: 'tall ones, whose rate grows with the rows', tall: true, options: {}, nesterov: true, scale: Math.sqrt(3 / 2) },
  {
    name: "plain momentum and the size of AdamW's steps",
    tall: false,
    options: { nesterov: false, adjustLrFn: 'match_rms_adamw' as const },
    nesterov: false,
    scale: 0.2 * Math.sqrt(3),
  },
])('steps follow the formula for $name', ({ tall, options, nesterov, scale }) => {
  const oriented = (m: Matrix): Matrix => (tall ? turn(m) : m)
  const [lr, weightDecay, momentum] = [0.02, 0.1, 0.95]
  const parameter = torch.tensor(oriented(START)).requiresGrad_()
  const optimizer = new Muon([parameter], { lr, ...options })
  let want = oriented(START)
  let average = zip(() => 0, want, want)
  for (const given of GRADS) {
    const grad = oriented(given)
    parameter.grad = torch.tensor(grad)
    optimizer.step()
    average = zip((old, g) => old + (g - old) * (1 - momentum), average, grad)
    const direction = orthogonal(nesterov ? zip((g, m) => g + (m - g) * momentum, grad, average) : average, 5)
    want = zip((p, d) => p * (1 - lr * weightDecay) - lr * scale * d, want, direction)
    want.forEach((row, i) => row.forEach((value, j) => expect((parameter.toArray() as number[][])[i]?.[j]).toBeCloseTo(value, 5)))
  }
})

test('the direction is nearly orthogonal: its singular values are near 1', () => {
  const parameter = torch.zeros([3, 5]).requiresGrad_()
  torch.manualSeed(3)
  parameter.grad = torch.randn([3, 5])
  new Muon([parameter], { lr: 1, weightDecay: 0 }).step()
  const singular = torch.linalg.svdvals(parameter.detach()).toArray() as number[]
  for (const value of singular) expect(Math.abs(value - 1)).toBeLessThan(0.4)
})

test('its state is a momentumBuffer, and it takes matrices only', () => {
  const parameter = torch.ones([2, 2]).requiresGrad_()
  const optimizer = new Muon([parameter])
  parameter.grad = torch.ones([2, 2])
  optimizer.step()
  expect(Object.keys(optimizer.stateDict({ names: 'pytorch' }).state[0] ?? {})).toEqual(['momentum_buffer'])
  expect(() => new Muon([torch.ones([2]).requiresGrad_()])).toThrow(/all parameters must be matrices \(2 dimensions\), got shape \[2\]/)
  expect(() => new Muon([parameter], { nsSteps: 100 })).toThrow(/'nsSteps' must be an integer from 0 to 99/)
  expect(() => new Muon([parameter], { adjustLrFn: 'other' as never })).toThrow(/'adjustLrFn' must be/)
})
