// vmap: every rule against the loop that it stands for, with derivatives inside and outside; and its errors.
import { describe, expect, test, vi } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { functionalCall, grad, vmap } from 'tensorfx/func'

const F = torch.nn.functional
let seed = 0
const sample = (...shape: number[]): Tensor => {
  torch.manualSeed(++seed)
  return torch.randn(shape)
}
const labels = (...values: number[]): Tensor => torch.tensor(values, { dtype: 'int64' })
const values = (t: Tensor): number[] => Array.from(t.detach().contiguous().toTypedArray() as ArrayLike<number | bigint>, Number)

type Fn = (...args: Tensor[]) => Tensor | readonly Tensor[]
const listOf = (result: Tensor | readonly Tensor[]): readonly Tensor[] => (Array.isArray(result) ? (result as readonly Tensor[]) : [result as Tensor])

/** What vmap computes, and the loop. `shared`: arguments that all examples share. */
function expectLoop(fn: Fn, args: readonly Tensor[], shared: readonly number[] = []): void {
  const inDims = args.map((_, i) => (shared.includes(i) ? null : 0))
  const [size = 0] = args.find((_, i) => !shared.includes(i))?.shape ?? []
  const mapped = listOf(vmap(fn, { inDims })(...args))
  const each = Array.from({ length: size }, (_, b) => listOf(fn(...args.map((x, i) => (shared.includes(i) ? x : x.select(0, b))))))
  mapped.forEach((whole, k) => {
    const looped = torch.stack(each.map((results) => results[k] as Tensor))
    expect(whole.shape).toEqual(looped.shape)
    expect(whole.dtype).toBe(looped.dtype)
    values(whole).forEach((v, i) => expect(v).toBeCloseTo(values(looped)[i] ?? NaN, 4))
  })
}

const x = sample(3, 2, 4)
const y = sample(3, 2, 4)
const cases: Readonly<Record<string, readonly [fn: Fn, args: readonly Tensor[], shared?: readonly number[]]>> = {
  'element by element, of several ranks': [(a, b) => a.mul(b).add(1).tanh(), [x, sample(3, 4)]],
  'a number of each example': [(a, s) => a.mul(s), [x, sample(3)]],
  'a number of another dtype does not promote': [(a, s) => a.mul(s), [x, sample(3).double()]],
  'in place on a new tensor': [(a, b) => a.clone().add_(b).mul_(2), [x, y]],
  'sums over all, one and several dimensions': [(a) => [a.sum(), a.sum(0), a.mean(-1, true), a.sum([0, 1])], [x]],
  'the sum of a number': [(s) => s.sum(), [sample(3)]],
  'products and extremes': [(a) => [a.prod(1), a.amax(0), a.max(1)[0] as Tensor, a.argmax(1), a.argmax(), a.argmin(-1)], [x]],
  softmax: [(a) => [a.softmax(-1), F.logSoftmax(a, 0), a.logsumexp(0)], [x]],
  'running sums': [(a) => a.cumsum(1), [x]],
  'the greatest': [(a) => a.topk(2, -1), [x]],
  views: [(a) => [a.t(), a.unsqueeze(0), a.unsqueeze(-1), a.reshape(-1), a.view(4, 2), a.flatten(), a.expand(5, 2, 4), a.permute(1, 0)], [x]],
  'views of views': [(a) => a.t().contiguous().view(8).narrow(0, 1, 3), [x]],
  squeeze: [(a) => [a.squeeze(), a.squeeze(0)], [sample(3, 1, 4)]],
  'a batch of one is not squeezed': [(a) => a.squeeze(), [sample(1, 1, 4)]],
  parts: [(a) => [a.select(1, 2), a.slice(1, 1, 3), a.getitem(0), a.diagonal(), ...a.chunk(2, 1), ...a.unbind(0)], [x]],
  'joins, with a shared tensor': [(a, b) => [torch.cat([a, b], 0), torch.stack([a, b])], [x, sample(2, 4)], [1]],
  gather: [(a, i) => a.gather(1, i), [x, torch.zeros([3, 2, 1], { dtype: 'int64' })]],
  'gather with a shared index': [(a, i) => a.gather(1, i), [x, labels(0, 3).view(2, 1)], [1]],
  indexSelect: [(a, i) => a.indexSelect(1, i), [x, labels(0, 2)], [1]],
  where: [(a, b) => torch.where(a.gt(0), a, b), [x, y]],
  'mm, both batched': [(a, b) => a.mm(b.t()), [x, y]],
  'mm, one shared': [(a, b) => [a.mm(b), b.t().mm(a.t())], [x, sample(4, 5)], [1]],
  'products of vectors': [(a, b) => [a.dot(b), torch.outer(a, b)], [sample(3, 4), sample(3, 4)]],
  bmm: [(a, b) => torch.bmm(a, b), [sample(3, 2, 2, 4), sample(3, 2, 4, 5)]],
  'linear with shared weights': [(a, w, b) => F.linear(a, w, b), [x, sample(5, 4), sample(5)], [1, 2]],
  'linear with weights of each example': [(a, w, b) => F.linear(a, w, b), [x, sample(3, 5, 4), sample(3, 5)]],
  'convolution with shared weights': [(a, w) => F.conv2d(a, w, null, 1, 1), [sample(3, 2, 2, 5, 5), sample(4, 2, 3, 3)], [1]],
  'convolution with weights of each example': [(a, w, b) => F.conv2d(a, w, b, 2), [sample(3, 2, 2, 5, 5), sample(3, 4, 2, 3, 3), sample(3, 4)]],
  'convolution in groups': [(a, w) => F.conv2d(a, w, null, 1, 0, 1, 2), [sample(3, 2, 4, 5, 5), sample(3, 4, 2, 3, 3)]],
  'convolution of one image': [(a, w) => F.conv1d(a, w), [sample(3, 2, 6), sample(4, 2, 3)], [1]],
  pooling: [(a) => [F.maxPool2d(a, 2), F.avgPool2d(a, 2)], [sample(3, 2, 2, 4, 4)]],
  'pooling of one image': [(a) => F.maxPool2d(a, 2), [sample(3, 2, 4, 4)]],
  'layer norm': [(a, w) => [F.layerNorm(a, [4]), F.layerNorm(a, [4], w)], [x, sample(4)], [1]],
  embedding: [(i, w) => F.embedding(i, w), [labels(0, 1, 2, 2, 1, 0).view(3, 2), sample(3, 4)], [1]],
  'cross entropy': [(a, t) => F.crossEntropy(a, t), [x, labels(0, 1, 2, 3, 1, 1).view(3, 2)]],
  'a result that does not depend on the batch': [(a, b) => [a, b.mul(2)], [x, sample(2)], [1]],
}

describe('rules', () => {
  const warn = vi.spyOn(console, 'warn').mockImplementation(() => undefined)
  test.each(Object.entries(cases))('%s', (_, [fn, args, shared]) => {
    warn.mockClear()
    expectLoop(fn, args, shared)
    expect(warn.mock.calls.flat().join('\n')).toBe('')
  })
})

describe('derivatives', () => {
  const loss = (w: Tensor, b: Tensor, a: Tensor, t: Tensor): Tensor => F.crossEntropy(F.linear(a, w, b).tanh().unsqueeze(0), t.unsqueeze(0))
  const [w, b, inputs, targets] = [sample(5, 4), sample(5), sample(3, 4), labels(1, 0, 4)]

  test('of each example, by vmap of grad', () => {
    const perExample = vmap(grad(loss, { argnums: [0, 1] }), { inDims: [null, null, 0, 0] })(w, b, inputs, targets)
    for (let i = 0; i < 3; i++) {
      const one = grad(loss, { argnums: [0, 1] })(w, b, inputs.select(0, i), targets.select(0, i))
      one.forEach((g, k) => values((perExample[k] as Tensor).select(0, i)).forEach((v, j) => expect(v).toBeCloseTo(values(g)[j] ?? NaN, 5)))
    }
  })

  test('of the whole batch, by backward through vmap', () => {
    const leaf = w.clone().requiresGrad_()
    vmap(loss, { inDims: [null, null, 0, 0] })(leaf, b, inputs, targets)
      .sum()
      .backward()
    const plain = w.clone().requiresGrad_()
    for (let i = 0; i < 3; i++) loss(plain, b, inputs.select(0, i), targets.select(0, i)).backward()
    values(leaf.grad as Tensor).forEach((v, j) => expect(v).toBeCloseTo(values(plain.grad as Tensor)[j] ?? NaN, 5))
  })

  test('of derivatives of each example, by backward through vmap of grad', () => {
    const cube = (a: Tensor): Tensor => a.pow(3).sum()
    const leaf = torch
      .tensor([
        [1, 2],
        [3, 4],
      ])
      .requiresGrad_()
    vmap(grad(cube))(leaf).sum().backward()
    expect(values(leaf.grad as Tensor)).toEqual([6, 12, 18, 24])
  })

  test('of a module, by functionalCall', () => {
    const net = new torch.nn.Sequential(new torch.nn.Conv2d(1, 2, 3), new torch.nn.ReLU(), new torch.nn.Flatten(), new torch.nn.Linear(8, 3))
    const state = Object.fromEntries(net.namedParameters()) as Record<string, Tensor>
    const lossOf = (params: Record<string, Tensor>, image: Tensor, target: Tensor): Tensor =>
      F.crossEntropy(functionalCall(net, params, [image.unsqueeze(0)]) as Tensor, target.unsqueeze(0))
    const [images, classes] = [sample(3, 1, 4, 4), labels(0, 2, 1)]
    const found = vmap(grad(lossOf), { inDims: [null, 0, 0] })(state, images, classes)
    for (let i = 0; i < 3; i++) {
      net.zeroGrad()
      F.crossEntropy(net.call(images.select(0, i).unsqueeze(0)), classes.select(0, i).unsqueeze(0)).backward()
      for (const [name, parameter] of net.namedParameters())
        values((found[name] as Tensor).select(0, i)).forEach((v, j) => expect(v, name).toBeCloseTo(values(parameter.grad as Tensor)[j] ?? NaN, 4))
    }
  })
})

test('nests, and takes and gives batches in other dimensions', () => {
  const products = vmap(
    vmap((a: Tensor, b: Tensor) => a.mul(b), { inDims: [null, 0] }),
    { inDims: [0, null] },
  )(torch.tensor([1, 2, 3]), torch.tensor([10, 20]))
  expect(products.toArray()).toEqual([
    [10, 20],
    [20, 40],
    [30, 60],
  ])
  const columns = vmap((a: Tensor) => a.mul(2), { inDims: 1, outDims: -1 })(
    torch.tensor([
      [1, 2, 3],
      [4, 5, 6],
    ]),
  )
  expect(columns.toArray()).toEqual([
    [2, 4, 6],
    [8, 10, 12],
  ])
  const named = vmap(({ p, q }: { p: Tensor; q: Tensor }) => ({ sum: p.add(q) }), { inDims: [{ p: 0, q: null }] })({
    p: torch.tensor([1, 2]),
    q: torch.tensor(5),
  })
  expect(named.sum.toArray()).toEqual([6, 7])
})

test('an operator without a rule is computed one by one, and says so once', () => {
  const warn = vi.spyOn(console, 'warn').mockImplementation(() => undefined)
  expectLoop((a) => torch.asStrided(a, [2, 2], [1, 2], 1), [sample(3, 2, 4)])
  // It is said once in a process, and files of tests share one: an operator that no other file knows.
  const halved = torch.library.customOp('vmaptest::halved', {
    schema: '(Tensor x) -> Tensor',
    forward: (a: Tensor) => a.div(2),
    fake: (a: Tensor) => torch.emptyLike(a),
  })
  for (let call = 0; call < 2; call++) expectLoop((a) => halved(a), [sample(3, 2, 4)])
  expect(warn.mock.calls.filter(([text]) => String(text).includes('halved'))).toHaveLength(1)
  warn.mockRestore()
})

describe('errors', () => {
  const id = (a: Tensor): Tensor => a
  test.each([
    [() => vmap(id)(torch.tensor(1)), 'an argument of shape [] has no dimension 0'],
    [() => vmap(id, { inDims: null })(x), "at least one argument must have a batch: no entry of option 'inDims' is a number."],
    [() => vmap((a: Tensor, b: Tensor) => a.add(b))(sample(2), sample(3)), 'the arguments must have batches of one size, got 2, 3'],
    [() => vmap(id, { inDims: 0.5 })(x), "option 'inDims' must be an integer, null, or a nested value like the arguments, got 0.5."],
    [() => vmap(id, { inDims: [0, 0] })(x), "option 'inDims' must be an integer, null, or a nested value like the arguments"],
    [() => vmap(id)(3 as never), 'null says that all examples share an argument.'],
    [() => vmap((_a: Tensor) => 3)(x), 'vmap: fn must return tensors, or arrays and objects of them, got 3.'],
    [() => vmap(id, { outDims: null })(x), 'but this one depends on the batch'],
    [() => vmap((a: Tensor) => torch.zeros([2, 4]).add_(a))(x), 'into a tensor that all examples share'],
    [() => vmap((a: Tensor) => a.add(torch.rand([4])))(x), "Pass { randomness: 'different' } to draw others for each example"],
    [() => vmap((a: Tensor) => a.matmul(torch.ones([3])))(x), 'shape [2, 4]'],
    [() => vmap((a: Tensor) => torch.tensor(a.sum().item() as number))(x), 'this tensor is fake'],
    [() => vmap(id, { randomness: 'other' as never }), "option 'randomness' must be 'error', 'same' or 'different', got 'other'."],
  ])('case %#', (run, message) => expect(run).toThrow(message))

  test('randomness different draws for each example', () => {
    const x = sample(3, 40)
    const { nn } = torch
    const rows = (fn: (a: Tensor) => Tensor): string[] => {
      torch.manualSeed(3)
      return (vmap(fn, { randomness: 'different' })(x).toArray() as number[][]).map((row) => row.join())
    }
    for (const draw of [
      () => torch.rand([40]),
      () => torch.randn([40]),
      () => torch.randint(0, 100, [40]),
      () => torch.randperm(40),
      () => nn.functional.dropout(torch.ones([40]), { p: 0.5 }),
    ]) {
      const drawn = rows((a) => a.mul(0).add(draw()))
      expect(new Set(drawn).size).toBe(3)
      expect(rows((a) => a.mul(0).add(draw()))).toEqual(drawn)
    }
    for (const row of rows((a) => a.mul(0).add(torch.randperm(40)))) expect(new Set(row.split(',')).size).toBe(40)
    // Draws from what all examples share, as above, and from the examples.
    expect(new Set(rows((a) => nn.functional.dropout(a.mul(0).add(1), { p: 0.5 }))).size).toBe(3)
  })

  test('randomness same draws once for all', () => {
    const drawn = vmap((a: Tensor) => a.mul(0).add(torch.rand([4])), { randomness: 'same' })(sample(3, 4))
    expect(drawn.select(0, 0).toArray()).toEqual(drawn.select(0, 2).toArray())
  })
})
