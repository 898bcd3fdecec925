// Tensors as messages: what transfer() holds, what fromTransfer() makes of it, and what it refuses.
import { Worker } from 'node:worker_threads'
import { describe, expect, it } from 'vitest'
import { Tensor, torch } from 'tensorfx'
import type { TensorTransfer } from 'tensorfx'
import { dtypes } from '../../src/tensor/index.ts'

const { fromTransfer } = torch
/** What the other side gets: all of it copied, the buffer moved. */
const sent = (message: TensorTransfer): TensorTransfer => structuredClone(message, { transfer: [message.buffer] })

describe('a tensor that is sent', () => {
  it.each(dtypes)('arrives with the same elements: %s', (dtype) => {
    const x = torch.tensor([0, 1, 1, 0, 1, 1], { dtype }).reshape([2, 3])
    const message = x.transfer()
    const y = fromTransfer(sent(message))
    expect([y.dtype, y.shape, y.toArray()]).toEqual([dtype, [2, 3], x.toArray()])
    expect(message.buffer.byteLength).toBe(0)
  })

  it('is a copy: later changes do not reach it, and the message can be used twice if its buffer is not moved', () => {
    const x = torch.tensor([1, 2, 3])
    const message = x.transfer()
    x.fill_(7)
    const [y, z] = [fromTransfer(structuredClone(message)), fromTransfer(message)]
    y.fill_(9)
    expect([z.toArray(), x.toArray()]).toEqual([
      [1, 2, 3],
      [7, 7, 7],
    ])
  })

  it('keeps its layout, unless that has gaps: those would hold elements of other tensors', () => {
    const base = torch.arange(12, { dtype: 'float32' }).reshape([3, 4])
    const cases: readonly (readonly [Tensor, readonly number[], number])[] = [
      [base.t(), [1, 4], 48],
      [base.select(1, 2), [1], 12],
      [base.narrow(1, 1, 2), [2, 1], 24],
      [base.narrow(0, 1, 2), [4, 1], 32],
      [torch.tensor([5]).expand([1000]), [0], 4],
      [base.sum(), [], 4],
      [torch.zeros([0, 3]), [3, 1], 0],
    ]
    for (const [x, strides, bytes] of cases) {
      const message = x.transfer()
      expect([message.strides, message.buffer.byteLength]).toEqual([strides, bytes])
      expect(fromTransfer(sent(message)).toArray()).toEqual(x.toArray())
    }
  })

  it('keeps requiresGrad if it is a leaf; one that autograd computed must be detached', () => {
    const w = torch.tensor([1, 2], { requiresGrad: true })
    expect(fromTransfer(w.transfer()).requiresGrad).toBe(true)
    expect(() => w.mul(2).transfer()).toThrow(/^transfer: .* send x\.detach\(\)\.transfer\(\)\./)
    expect(fromTransfer(w.mul(2).detach().transfer()).toArray()).toEqual([2, 4])
  })

  it('must have data', () => {
    expect(() => Tensor.fake({ shape: [2], dtype: 'float32' }).transfer()).toThrow(/fake/)
  })
})

describe('fromTransfer refuses', () => {
  const good = (): TensorTransfer => torch.ones([2, 3]).transfer()
  const bad: readonly (readonly [string, () => unknown, RegExp])[] = [
    ['nothing', () => undefined, /expected what tensor\.transfer\(\) returned, got undefined/],
    ['a tensor', () => torch.ones([1]), /got a tensor, which is here already/],
    ['another object', () => ({ shape: [1] }), /got an object/],
    ['a negative size', () => ({ ...good(), shape: [-2, -3] }), /damaged: shape is \[-2, -3\]/],
    ['a fraction', () => ({ ...good(), shape: [0.5, 12] }), /damaged: shape/],
    ['a size as text', () => ({ ...good(), shape: ['2', 3] }), /damaged: shape/],
    ['a huge size', () => ({ ...good(), shape: [2 ** 53, 3] }), /damaged: shape/],
    ['sizes with a huge product', () => ({ ...good(), shape: [2 ** 40, 2 ** 40], strides: [1, 1] }), /needs \d+ bytes, and the buffer has 24/],
    ['strides of another rank', () => ({ ...good(), strides: [1] }), /damaged: strides/],
    ['negative strides', () => ({ ...good(), strides: [-3, 1] }), /damaged: strides/],
    ['strides that reach past the end', () => ({ ...good(), strides: [4, 1] }), /needs 28 bytes, and the buffer has 24/],
    ['an unknown dtype', () => ({ ...good(), dtype: 'float31' }), /damaged: dtype is 'float31'/],
    ['the name of an object member as a dtype', () => ({ ...good(), dtype: '__proto__' }), /damaged: dtype/],
    ['gradients of integers', () => ({ ...good(), dtype: 'int32', requiresGrad: true }), /damaged: requiresGrad/],
    ['bytes that are no buffer', () => ({ ...good(), buffer: new Uint8Array(24) }), /damaged: buffer/],
  ]
  it.each(bad)('%s', (_what, message, expected) => {
    expect(() => fromTransfer(message() as never)).toThrow(expected)
  })

  it('a message whose buffer was moved already, and says so', () => {
    const message = good()
    sent(message)
    expect(() => fromTransfer(message)).toThrow(/the buffer has 0: it was moved to another thread; call transfer\(\) once for each/)
  })
})

describe('a tensor that is sent as it is', () => {
  it('is an error that names transfer() and fromTransfer()', () => {
    const x = torch.ones([2])
    const text = /A tensor cannot be sent or cloned as it is: send tensor\.transfer\(\), .* torch\.fromTransfer\(message\)/
    expect(() => structuredClone(x)).toThrow(text)
    expect(() => structuredClone({ deep: [x] })).toThrow(text)
    expect(() => new MessageChannel().port1.postMessage(x)).toThrow(text)
    expect(() => structuredClone(torch.ones([2], { requiresGrad: true }).mul(2))).toThrow(text)
    expect(() => structuredClone(Tensor.fake({ shape: [2], dtype: 'float32' }))).toThrow(text)
  })
})

it('a worker computes with tensors of the program, and sends its own back', async () => {
  const worker = new Worker(
    new URL(
      `data:text/javascript,${encodeURIComponent(`
      import { parentPort } from 'node:worker_threads'
      import { torch } from '${new URL('../../dist/index.js', import.meta.url).href}'
      parentPort.on('message', ({ x, y }) => {
        const product = torch.fromTransfer(x).matmul(torch.fromTransfer(y)).transfer()
        parentPort.postMessage(product, [product.buffer])
      })`)}`,
    ),
  )
  try {
    const [x, y] = [torch.randn([8, 16]), torch.randn([4, 16]).t()]
    const message = { x: x.transfer(), y: y.transfer() }
    const answer = new Promise<TensorTransfer>((resolve, reject) => worker.once('message', resolve).once('error', reject))
    worker.postMessage(message, [message.x.buffer, message.y.buffer])
    expect(fromTransfer(await answer).toArray()).toEqual(x.matmul(y).toArray())
  } finally {
    await worker.terminate()
  }
})
