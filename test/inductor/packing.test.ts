// Packed weights: never stale, whatever changes the data; in memory of their own, which is given back with the program, or before memory runs out.
import { afterEach, describe, expect, test } from 'vitest'
import { compile, nn, noGrad, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { reset } from 'tensorfx/compile'
import { collectBlocks, memoryLimit, reclaimables, setMemoryLimit } from 'tensorfx/kernels'
import { FROM, TO, changesOfWeights, copiedBytes } from '../helpers/changesOfWeights.ts'
import { third } from '../helpers/rotation.ts'

const { functional: F } = nn
const ROWS = 16

/** Bytes of packed weights. */
const packedBytes = (): number => copiedBytes('packed weights of a compiled function')

const linear = (x: Tensor, w: Tensor): Tensor => F.linear(x, w)

/** Calls until the weight is packed. */
function pack(f: (x: Tensor, w: Tensor) => Tensor, x: Tensor, w: Tensor): void {
  for (let i = 0; i < 3; i++) noGrad(() => f(x, w))
  expect(packedBytes()).toBeGreaterThan(0)
}

afterEach(() => {
  for (const memory of reclaimables) memory.reclaim()
})

describe('packed weights', () => {
  test.each(Object.entries(changesOfWeights))('are packed anew after %s', (_, change) => {
    const [x, w] = [torch.randn([ROWS, FROM]), torch.randn([TO, FROM])]
    const f = compile(linear)
    // Once unpacked, then packed, then again packed after a change.
    for (let round = 0; round < 3; round++) {
      if (round < 2) pack(f, x, w)
      const before = f(x, w).clone()
      noGrad(() => change(w))
      const expected = linear(x, w)
      expect(expected.equal(before)).toBe(false)
      for (let i = 0; i < 5; i++) expect(noGrad(() => f(x, w)).equal(expected), `call ${i}`).toBe(true)
    }
  })

  test.each(third(Object.entries(changesOfWeights)))('of a convolution are transformed anew after %s', (_, change) => {
    const [x, w] = [torch.randn([1, 64, 10, 12]), torch.randn([128, 64, 3, 3])]
    const read = (input: Tensor, weight: Tensor): Tensor => F.relu(F.conv2d(input, weight, { padding: 1 }))
    const f = compile(read)
    for (let round = 0; round < 3; round++) {
      if (round < 2) pack(f, x, w)
      const before = f(x, w).clone()
      noGrad(() => change(w))
      const expected = noGrad(() => read(x, w.clone()))
      expect(expected.equal(before)).toBe(false)
      for (let i = 0; i < 5; i++) expect(noGrad(() => f(x, w)).equal(expected), `call ${i}`).toBe(true)
    }
  })

  test('belong to one tensor: others of the same shape, and other parts of its memory, are not taken for it', () => {
    const both = torch.randn([2, TO, FROM])
    const [x, w, other, alone] = [torch.randn([ROWS, FROM]), both.select(0, 0), both.select(0, 1), torch.randn([TO, FROM])]
    const f = compile(linear)
    for (const weight of [w, other, alone, w]) {
      pack(f, x, weight)
      expect(f(x, weight).equal(linear(x, weight))).toBe(true)
    }
    for (const weight of [w, alone, w, other, w]) expect(f(x, weight).equal(linear(x, weight))).toBe(true)
  })

  test('are right with epilogues, several layers and weights that lie the other way, also where the epilogue reads the weight', () => {
    const f = (x: Tensor, v: Tensor, w: Tensor, b: Tensor): Tensor =>
      F.gelu(F.linear(x, w, b))
        .mm(v)
        .add(1)
    const [x, v, w, b] = [torch.randn([ROWS, FROM]), torch.randn([TO, 40]), torch.randn([TO, FROM]), torch.randn([TO])]
    const square = torch.randn([48, 48])
    const g = (y: Tensor): Tensor => torch.eye(48).mm(y).add(y)
    const [fast, fastSquare] = [compile(f), compile(g)]
    const [expected, expectedSquare] = [f(x, v, w, b), g(square)]
    for (let i = 0; i < 5; i++) {
      expect(fast(x, v, w, b).sub(expected).abs().max().item()).toBeLessThan(1e-3)
      expect(fastSquare(square).equal(expectedSquare)).toBe(true)
    }
  })

  test('are not made while the weight changes from call to call', () => {
    const [x, w] = [torch.randn([ROWS, FROM]), torch.randn([TO, FROM])]
    const f = compile(linear)
    for (let i = 0; i < 6; i++) {
      noGrad(() => w.add_(0.1))
      expect(f(x, w).equal(linear(x, w))).toBe(true)
      expect(f(x, w).equal(linear(x, w))).toBe(true)
    }
    expect(packedBytes()).toBe(0)
  })

  test('count as memory, and are freed with the program', async () => {
    const [x, w] = [torch.randn([ROWS, FROM]), torch.randn([TO, FROM])]
    const run = (): void => pack(compile(linear), x, w)
    run()
    expect(packedBytes()).toBe(4 * FROM * 304)
    reset()
    // Frames may refer to the program a little longer.
    for (let attempt = 0; attempt < 10 && packedBytes() > 0; attempt++) {
      await new Promise((resolve) => setImmediate(resolve))
      collectBlocks()
    }
    expect(packedBytes()).toBe(0)
  })

  test('are given back before memory runs out, and packed again', () => {
    const [x, w] = [torch.randn([ROWS, FROM]), torch.randn([TO, FROM])]
    const f = compile(linear)
    pack(f, x, w)
    torch.memory.emptyCache()
    expect(packedBytes()).toBe(0)
    expect(f(x, w).equal(linear(x, w))).toBe(true)
    pack(f, x, w)
    expect(f(x, w).equal(linear(x, w))).toBe(true)
  })

  test('are left out where there is no room', () => {
    const [x, w] = [torch.randn([ROWS, FROM]), torch.randn([TO, FROM])]
    const f = compile(linear)
    const expected = f(x, w).clone()
    const limit = memoryLimit()
    collectBlocks()
    setMemoryLimit(torch.memory.memoryAllocated() + 4 * FROM * 200)
    try {
      for (let i = 0; i < 6; i++) expect(f(x, w).equal(expected)).toBe(true)
      expect(packedBytes()).toBe(0)
    } finally {
      setMemoryLimit(limit)
    }
    noGrad(() => w.mul_(2))
    pack(f, x, w)
    expect(f(x, w).equal(linear(x, w))).toBe(true)
  })
})
