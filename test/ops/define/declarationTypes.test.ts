// Rules take the types of their arguments from the schema. The checks are the types: each expected error is a mistake that does not compile.
import { describe, expectTypeOf, test } from 'vitest'
import type { DType, Tensor } from 'tensorfx'
import { defineOp } from 'tensorfx/ops'
import type { OpFunction } from 'tensorfx/ops'
import type { Expr } from '../../../src/kernels/index.ts'
import type { Generator } from '../../../src/tensor/index.ts'
import type { ArgumentNames, ArgumentsOf, DerivativeOf, OperandsOf, ResultOf } from '../../../src/ops/define/schemaTypes.ts'

type Derivative<S extends string> = DerivativeOf<S, never>
type Grads<S extends string> = Parameters<Derivative<S>>[0]
type Context<S extends string> = Parameters<Derivative<S>>[1]

describe('the types of a schema', () => {
  test('arguments', () => {
    expectTypeOf<ArgumentsOf<'f(Tensor self, int dim, ScalarType? dtype=None) -> Tensor'>>().toEqualTypeOf<[Tensor, number, DType | null]>()
    expectTypeOf<ArgumentsOf<'f(Tensor(a!) self, Tensor[] others, int[2] size=[1,1], *, bool ceil=False) -> Tensor'>>().toEqualTypeOf<
      [Tensor, readonly Tensor[], readonly number[], boolean]
    >()
    expectTypeOf<ArgumentsOf<"f(str mode='mean', Generator? generator=None, any rest) -> Tensor">>().toEqualTypeOf<
      [string, Generator | null, unknown]
    >()
    expectTypeOf<ArgumentsOf<'f(Scalar min_value=None, float eps=1e-05, int[]? dim=None) -> Tensor'>>().toEqualTypeOf<
      [number | null, number, readonly number[] | null]
    >()
    expectTypeOf<ArgumentsOf<'f() -> Tensor'>>().toEqualTypeOf<[]>()
  })

  test('names', () => {
    expectTypeOf<ArgumentNames<'f(Tensor self, *, Scalar min_value=None) -> Tensor'>>().toEqualTypeOf<'self' | 'minValue'>()
  })

  test('results', () => {
    expectTypeOf<ResultOf<'f(Tensor self) -> Tensor'>>().toEqualTypeOf<Tensor>()
    expectTypeOf<ResultOf<'f(Tensor self) -> (Tensor, Tensor)'>>().toEqualTypeOf<readonly [Tensor, Tensor]>()
    expectTypeOf<ResultOf<'f(Tensor self) -> Tensor[]'>>().toEqualTypeOf<readonly Tensor[]>()
  })

  test('gradients', () => {
    type One = 'f(Tensor self, Tensor? weight=None, int n) -> Tensor'
    expectTypeOf<Grads<One>>().toEqualTypeOf<readonly [Tensor]>()
    expectTypeOf<Context<One>['outputs']>().toEqualTypeOf<readonly [Tensor]>()
    expectTypeOf<ReturnType<Derivative<One>>>().toEqualTypeOf<readonly [Tensor | null, Tensor | null, null]>()
    // Of several results, some may have no gradient.
    expectTypeOf<Grads<'f(Tensor self) -> (Tensor, Tensor)'>>().toEqualTypeOf<readonly [Tensor | null, Tensor | null]>()
    expectTypeOf<Grads<'f(Tensor self) -> Tensor[]'>>().toEqualTypeOf<readonly (Tensor | null)[]>()
    expectTypeOf<ReturnType<Derivative<'f(Tensor[] tensors) -> Tensor'>>>().toEqualTypeOf<readonly [readonly (Tensor | null)[] | null]>()
  })

  test('operands of a pointwise rule', () => {
    type Schema = "f(Tensor self, Tensor other, Scalar alpha, str mode='none') -> Tensor"
    expectTypeOf<OperandsOf<Schema, never>>().toEqualTypeOf<[Expr, Expr, Expr, string]>()
    expectTypeOf<OperandsOf<Schema, 'alpha'>>().toEqualTypeOf<[Expr, Expr, number, string]>()
    // A number may stand in for the second tensor.
    type Args = Parameters<DerivativeOf<Schema, 'promote'>>[1]['args']
    expectTypeOf<Args>().toEqualTypeOf<[Tensor, Tensor | number, number, string]>()
  })
})

// None of these functions is called.
const unary = 'f(Tensor self, int dim) -> Tensor' as const
type Unary = (self: Tensor, dim: number) => Tensor
export const mistakes: readonly (() => OpFunction)[] = [
  () =>
    defineOp<Unary, typeof unary>({
      schema: unary,
      // @ts-expect-error dim is a number
      kernel: (self, dim: string) => self.view([dim.length]),
    }),
  () =>
    defineOp({
      schema: 'f(Tensor self, int dim) -> Tensor',
      // @ts-expect-error a number has no shape
      decompose: (self, dim) => self.view(dim.shape),
    }),
  () =>
    defineOp({
      schema: 'f(Tensor self, int dim) -> Tensor',
      // @ts-expect-error there are two arguments
      meta: (self, dim, keepdim) => ({ shape: self.shape, dtype: self.dtype, keepdim, dim }),
    }),
  () =>
    defineOp({
      schema: 'f(Tensor self) -> (Tensor, Tensor)',
      // @ts-expect-error there are two results
      kernel: (self) => [self],
    }),
  () =>
    defineOp({
      schema: 'f(Tensor self, Tensor other) -> Tensor',
      // @ts-expect-error there are two arguments
      derivative: ([g]) => [g],
    }),
  () =>
    defineOp({
      schema: 'f(Tensor self, int dim) -> Tensor',
      // @ts-expect-error a number has no gradient
      derivative: ([g]) => [g, g],
    }),
  () =>
    defineOp({
      schema: 'f(Tensor self) -> Tensor',
      // @ts-expect-error there is one result
      derivative: ([g, h]) => [g ?? h],
    }),
  () =>
    defineOp({
      schema: 'f(Tensor self, Scalar value) -> Tensor',
      // @ts-expect-error no argument is called `val`
      pointwise: { promotion: 'promote', baked: ['val'], compute: (self) => self },
    }),
  () =>
    defineOp({
      schema: 'f(Tensor self, itn dim) -> Tensor',
      // @ts-expect-error the type of dim is misspelt
      decompose: (self, dim) => self.sum(dim),
    }),
]
