// Operators that a program defines and registers itself.
import { describe, expect, test } from 'vitest'
import { ArgumentError, InternalError, compile, fx, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { FakeTensorMode, RecordMode, withMode } from 'tensorfx/dispatch'
import { allOps, defineOp, opByName, opOf, registerOp } from 'tensorfx/ops'
import type { OpFunction } from 'tensorfx/ops'
import { add, mul, relu, sum } from '../../../src/ops/index.ts'
import { lookupTarget, targetInfo } from '../../../src/protocol/index.ts'
import { Tensor as TensorClass } from '../../../src/tensor/index.ts'

const { tensor } = torch

const cubed: OpFunction<(self: Tensor, options?: { readonly scale?: number }) => Tensor> = defineOp({
  schema: 'cubed_up(Tensor self, *, float scale=1) -> Tensor',
  namespace: 'mine',
  method: true,
  decompose: (self, scale) => mul(mul(mul(self, self), self), scale),
})

describe('a custom operator', () => {
  test('can be called before it is registered, but nobody knows it', () => {
    const alone: OpFunction<(self: Tensor) => Tensor> = defineOp({
      schema: 'alone(Tensor self) -> Tensor',
      namespace: 'mine',
      method: true,
      decompose: (self) => mul(self, 2),
    })
    expect(alone(tensor([1, 2])).toArray()).toEqual([2, 4])
    expect(alone.name).toBe('alone')
    expect(opOf(alone)?.qualname).toBe('mine.alone')
    expect([opByName('mine.alone'), lookupTarget('mine.alone')]).toEqual([undefined, undefined])
    expect('alone' in tensor(1)).toBe(false)
  })

  test('becomes a row of the table, a name and a method when it is registered', () => {
    const before = allOps().length
    expect(registerOp(cubed)).toBe(cubed)
    expect(registerOp(cubed)).toBe(cubed)
    expect(allOps().length).toBe(before + 1)
    expect(opByName('mine.cubed_up')).toBe(cubed.op)
    expect(lookupTarget('mine.cubed_up')).toBe(cubed.op.fn)
    expect(targetInfo(cubed)).toMatchObject({ shortName: 'cubed_up', effects: 'pure', schema: cubed.op.schema })
    const x = tensor([1, 2]) as Tensor & { cubedUp: (options?: object) => Tensor }
    expect(x.cubedUp({ scale: 10 }).toArray()).toEqual([10, 80])
    expect(x.cubedUp.name).toBe('cubedUp')
    expect(Object.keys(TensorClass.prototype)).not.toContain('cubedUp')
  })

  test('is differentiated, traced, compiled and faked', () => {
    const x = tensor([1, 2]).requiresGrad_()
    expect(torch.autograd.grad(sum(cubed(x)), x)[0]?.toArray()).toEqual([3, 12])
    const program = (a: Tensor): Tensor => cubed(a, { scale: 2 })
    const traced = fx.symbolicTrace(program)
    expect(traced.code).toContain('mine.cubedUp(a, { scale: 2 })')
    expect(traced.call(tensor([3])).toArray()).toEqual([54])
    expect(compile(program)(tensor([3])).toArray()).toEqual([54])
    expect(withMode(new FakeTensorMode(), () => cubed(x)).shape).toEqual([2])
  })

  test('with a kernel and a meta of its own is one call', () => {
    const firsts: OpFunction<(self: Tensor, n: number) => Tensor> = defineOp({
      schema: 'firsts(Tensor self, int n) -> Tensor',
      namespace: 'mine',
      meta: (self, n) => ({ shape: [n], dtype: self.dtype }),
      kernel: (self, n) => tensor(Float32Array.from(self.toTypedArray()).slice(0, n)),
    })
    const mode = new RecordMode()
    expect(withMode(mode, () => firsts(tensor([1, 2, 3]), 2).toArray())).toEqual([1, 2])
    expect(mode.names.at(-1)).toBe('mine.firsts')
    const fake = withMode(new FakeTensorMode(), () => firsts(tensor([1, 2, 3]), 2))
    expect([fake.isFake, fake.shape]).toEqual([true, [2]])
    expect(() => firsts(tensor([1]).requiresGrad_(), 1).backward()).toThrow('backward of mine.firsts: this operator has no derivative.')
  })

  test('may write in place', () => {
    const tripled: OpFunction<(self: Tensor) => Tensor> = defineOp({
      schema: 'tripled(Tensor self) -> Tensor',
      namespace: 'mine',
      decompose: (self) => mul(self, 3),
    })
    const tripled_: OpFunction<(self: Tensor) => Tensor> = registerOp(
      defineOp({ schema: 'tripled_(Tensor(a!) self) -> Tensor(a!)', namespace: 'mine', functional: tripled }),
    )
    const x = tensor([1, 2])
    expect(tripled_(x)).toBe(x)
    expect(x.toArray()).toEqual([3, 6])
    expect(targetInfo(tripled_)?.effects).toBe('mutates')
    const random = registerOp(
      defineOp({ schema: 'noise(Tensor self) -> Tensor', namespace: 'mine', tags: ['random'], decompose: (self) => add(self, 0) }),
    )
    expect(targetInfo(random)?.effects).toBe('random')
  })
})

describe('errors', () => {
  const decompose = (self: Tensor): Tensor => self

  test('names that are taken', () => {
    expect(() => registerOp(defineOp({ schema: 'relu(Tensor self) -> Tensor', decompose }))).toThrow(
      new ArgumentError("registerOp: there is another operator called 'torch.relu'; give this one a name or a namespace of its own."),
    )
    expect(() => registerOp(defineOp({ schema: 'relu(Tensor self) -> Tensor', namespace: 'mine', method: true, decompose }))).toThrow(
      new ArgumentError("registerOp: Tensor already has a method 'relu'; leave out `method` from mine.relu, or give it another name."),
    )
    expect(opByName('mine.relu')).toBeUndefined()
    expect(opByName('torch.relu')).toBe(relu.op)
  })

  test('declarations that contradict themselves', () => {
    expect(() => defineOp({ schema: 'nothing(Tensor self) -> Tensor', namespace: 'mine' })).toThrow(
      new InternalError('operator mine.nothing declares no meta, and none can be derived'),
    )
    expect(() =>
      defineOp({ schema: 'wrong(Tensor self, bool keepdim) -> Tensor', namespace: 'mine', reduction: sum.op.reduction ?? never() }),
    ).toThrow(new InternalError('operator mine.wrong: the arguments of a reduction are (self, dim, keepdim), in this order'))
    expect(() =>
      defineOp({ schema: 'plain_(Tensor(a!) self) -> Tensor(a!)', namespace: 'mine', functional: (() => 0) as unknown as OpFunction }),
    ).toThrow(new InternalError('operator mine.plain_: `functional` is not a function of the operator table'))
    expect(() => defineOp({ schema: 'relu' as string, decompose })).toThrow(ArgumentError)
  })

  test('an operator that cannot be run', () => {
    const shapeless: OpFunction<(self: Tensor) => Tensor> = defineOp({
      schema: 'shapeless(Tensor self) -> Tensor',
      namespace: 'mine',
      meta: (self) => ({ shape: self.shape, dtype: self.dtype }),
    })
    expect(() => shapeless(tensor([1]))).toThrow(new InternalError('operator mine.shapeless has neither a kernel nor a decomposition'))
  })
})

const never = (): never => {
  throw new Error('sum is a reduction')
}
