// Weights that eager calls read packed: never stale, whatever changes the data; with the bits of the call that packs in itself; in memory that is counted, and given back first.
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { nn, noGrad, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { allocate, collectBlocks, free, memoryLimit, reclaimables, setMemoryLimit } from 'tensorfx/kernels'
import { FROM, TO, changesOfWeights, copiedBytes } from '../helpers/changesOfWeights.ts'
import { half, third } from '../helpers/rotation.ts'

const { functional: F } = nn

/** Bytes of packed weights. */
const packedBytes = (): number => copiedBytes('packed weights')

/** An operator that reads a weight, and an input for it. */
interface Reader {
  readonly weight: readonly number[]
  readonly input: readonly number[]
  readonly read: (x: Tensor, w: Tensor) => Tensor
  readonly bytes: number
  /** Whether each call makes a copy of a weight that is not contiguous, so that nothing is kept of that. */
  readonly isContiguous?: true
}

/** What the transformed weights of a convolution take. */
const keptBytes = (features: number, channels: number): number => 4 * 16 * (features * channels + 16) + 4 * 36 * 4 + 2 * 64

const readers: Readonly<Record<string, Reader>> = {
  linear: { weight: [TO, FROM], input: [16, FROM], read: (x, w) => F.linear(x, w), bytes: 4 * FROM * 304 },
  mm: { weight: [TO, FROM], input: [16, TO], read: (x, w) => x.mm(w), bytes: 4 * FROM * TO },
  // By Winograd's algorithm: 16 products for each window, a gap behind each, and scratch memory.
  convolution: {
    weight: [128, 64, 3, 3],
    input: [1, 64, 10, 12],
    read: (x, w) => F.conv2d(x, w, { padding: 1 }),
    bytes: keptBytes(128, 64),
    isContiguous: true,
  },
  'the input gradient of a convolution': {
    weight: [64, 128, 3, 3],
    input: [1, 64, 10, 12],
    read: (x, w) => torch.ops.tensorfx.convolutionBackward(x, torch.ones([1, 128, 10, 12]), w, [1, 1], [1, 1], [1, 1], 1, true, false)[0],
    bytes: keptBytes(128, 64),
    isContiguous: true,
  },
}

const giveBack = (): void => {
  for (const memory of reclaimables) memory.reclaim()
}
beforeEach(giveBack)
afterEach(giveBack)

const operandsOf = ({ input, weight }: Reader): [Tensor, Tensor] => [torch.randn(input), torch.randn(weight)]

/** Calls until the weight is packed. Returns the result of the last call. */
function pack({ read }: Reader, x: Tensor, w: Tensor): Tensor {
  for (let i = 0; i < 3; i++) noGrad(() => read(x, w))
  expect(packedBytes()).toBeGreaterThan(0)
  return noGrad(() => read(x, w))
}

describe.each(Object.entries(readers))('packed weights of %s', (_, reader) => {
  const { read, bytes } = reader
  const operands = (): [Tensor, Tensor] => operandsOf(reader)
  /** With a weight that is in no other call. */
  const unpacked = (x: Tensor, w: Tensor): Tensor => noGrad(() => read(x, w.clone()))

  test.each(third(Object.entries(changesOfWeights)))('are packed anew after %s', (_, change) => {
    const [x, w] = operands()
    // Once unpacked, then packed, then again packed after a change.
    for (let round = 0; round < 3; round++) {
      const before = round < 2 ? pack(reader, x, w) : read(x, w)
      noGrad(() => change(w))
      const expected = unpacked(x, w)
      expect(expected.equal(before)).toBe(false)
      for (let i = 0; i < 5; i++) expect(noGrad(() => read(x, w)).equal(expected), `call ${i}`).toBe(true)
    }
  })

  test('belong to one part of the memory: other tensors, and other parts and views, are not taken for it', () => {
    const both = torch.randn([2, ...reader.weight])
    const [x] = operands()
    const [w, other, alone] = [both.select(0, 0), both.select(0, 1), torch.randn(reader.weight)]
    const turned = w.transpose(0, 1).contiguous().transpose(0, 1)
    const all = [w, other, alone, turned]
    for (const weight of all) expect(pack(reader, x, weight).equal(unpacked(x, weight))).toBe(true)
    expect(packedBytes()).toBe((reader.isContiguous ? 3 : 4) * bytes)
    for (const weight of [...all, ...all.toReversed()]) expect(read(x, weight).equal(unpacked(x, weight))).toBe(true)
  })

  test('have gradients, and are right in the training of the weight', () => {
    const [x, w] = operands()
    const copy = w.clone()
    for (const weight of [w, copy]) weight.requiresGrad = true
    for (let step = 0; step < 3; step++) {
      const [losses, fresh] = [w, copy].map((weight) => {
        weight.grad = null
        // The same weight several times in a step, as in a recurrent network.
        const times = weight === w ? 4 : 1
        let loss = read(x, weight).pow(2).mean()
        for (let i = 1; i < times; i++) loss = read(x, weight).pow(2).mean()
        loss.backward()
        noGrad(() => weight.sub_(weight.grad ?? 0))
        return loss.item()
      })
      expect(losses).toBe(fresh)
    }
    expect(w.equal(copy)).toBe(true)
  })

  test('are not made while the weight changes from call to call', () => {
    const [x, w] = operands()
    for (let i = 0; i < 6; i++) {
      noGrad(() => w.add_(0.1))
      for (let k = 0; k < 2; k++) expect(read(x, w).equal(unpacked(x, w))).toBe(true)
    }
    expect(packedBytes()).toBe(0)
  })

  test('count as memory, and are freed with the weight', async () => {
    const run = (): void => {
      const [x, w] = operands()
      pack(reader, x, w)
      const allocated = torch.memory.memoryAllocated()
      expect(packedBytes()).toBe(bytes)
      giveBack()
      expect(allocated - torch.memory.memoryAllocated()).toBeGreaterThanOrEqual(bytes)
      pack(reader, x, w)
    }
    run()
    for (let attempt = 0; attempt < 10 && packedBytes() > 0; attempt++) {
      await new Promise((resolve) => setImmediate(resolve))
      collectBlocks()
    }
    expect(packedBytes()).toBe(0)
  })

  test('are not read instead of a weight that was disposed of', () => {
    const [x, w] = operands()
    pack(reader, x, w)
    w.dispose()
    expect(() => read(x, w)).toThrow(/disposed/)
  })
})

describe.each(half(Object.entries(readers)))('packed weights of %s, where memory runs out,', (_, reader) => {
  const { read, bytes } = reader

  test('are given back before memory runs out, and packed again', () => {
    const [x, w] = operandsOf(reader)
    const expected = pack(reader, x, w)
    const limit = memoryLimit()
    collectBlocks()
    setMemoryLimit(torch.memory.memoryAllocated() + bytes / 2)
    try {
      // There is no room for this beside the copy.
      const large = torch.zeros([bytes / 4])
      expect(packedBytes()).toBe(0)
      for (let i = 0; i < 6; i++) expect(noGrad(() => read(x, w)).equal(expected)).toBe(true)
      large.dispose()
    } finally {
      setMemoryLimit(limit)
    }
    expect(pack(reader, x, w).equal(expected)).toBe(true)
  })

  test('are given back for scratch memory too', () => {
    const [x, w] = operandsOf(reader)
    pack(reader, x, w)
    const limit = memoryLimit()
    collectBlocks()
    setMemoryLimit(torch.memory.memoryAllocated() + bytes / 2)
    try {
      free(allocate(bytes), bytes)
      expect(packedBytes()).toBe(0)
    } finally {
      setMemoryLimit(limit)
    }
  })
})

describe('products of packed weights', () => {
  const draw = (most: number): number => 1 + Math.floor(torch.rand([1]).item() * most)

  test('tell a matrix from its transpose, which lies in the same memory', () => {
    const [x, square] = [torch.randn([16, 48]), torch.randn([48, 48])]
    for (let i = 0; i < 5; i++) for (const w of [square, square.t()]) expect(x.mm(w).equal(x.mm(w.contiguous().clone()))).toBe(true)
  })

  test.each(['default', 'strict'])('have the bits of those that pack in each call (%s)', (accuracy) => {
    torch.useDeterministicAlgorithms(accuracy === 'strict')
    try {
      for (let i = 0; i < 40; i++) {
        const [m, n, k] = [draw(i % 2 === 0 ? 12 : 128), draw(70), draw(90)]
        const [at, skip] = [draw(3), draw(2)]
        const lay = (rows: number, columns: number, isTurned: boolean): Tensor => {
          const memory = torch.randn(isTurned ? [columns + at, rows * skip] : [rows + at, columns * skip])
          const part = memory.narrow(0, at, isTurned ? columns : rows).slice(1, 0, memory.shape[1], skip)
          return isTurned ? part.t() : part
        }
        const [x, w] = [lay(m, k, draw(2) === 1), lay(n, k, draw(2) === 1)]
        const bias = draw(2) === 1 ? torch.randn([n]) : null
        const run = (): Tensor => (i % 3 === 0 ? x.mm(w.t()) : F.linear(x, w, bias))
        const first = run()
        for (let call = 0; call < 4; call++) expect(run().equal(first), `${m}x${k}x${n}, call ${call}`).toBe(true)
      }
    } finally {
      torch.useDeterministicAlgorithms(false)
    }
  })
})
