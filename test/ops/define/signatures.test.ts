// The generated types of operators (scripts/ops): what a schema makes of a function's signature, and that the types say what calls accept.
import { describe, expect, expectTypeOf, it, test } from 'vitest'
import type { CallOf } from '../../../src/ops/index.ts'
import type { Op } from '../../../src/ops/generated/signatures.ts'
import { findOperators } from '../../../scripts/generateOps.mjs'
import { asMethod, signatureOf, signaturesIn } from '../../../scripts/ops/signatures.mjs'
import { takesNumber } from '../../../src/ops/define/normalize.ts'
import { builtInOps } from '../builtInOps.ts'

/** The signature of a schema, as text. */
function written(schema: string, facts: { readonly pointwise?: boolean; readonly numberFirst?: boolean } = {}): string {
  const { calls } = signatureOf({ constant: 'made', schema, pointwise: false, numberFirst: false, ...facts })
  return calls.map(({ parameters, result }) => `(${parameters.join(', ')}) => ${result}`).join('; ')
}

describe('a schema gives', () => {
  it.each([
    ['f(Tensor self) -> Tensor', '(self: Tensor) => Tensor'],
    ['f.out(Tensor(a!) self, Tensor? weight) -> Tensor(a!)', '(self: Tensor, weight: Tensor | null) => Tensor'],
    [
      'f(Tensor[] tensors, ScalarType dtype, str op, any x) -> Tensor[]',
      '(tensors: readonly Tensor[], dtype: DType, op: string, x: unknown) => readonly Tensor[]',
    ],
    [
      'f(Tensor self, int[2] start_dims, float? p=None) -> (Tensor, Tensor)',
      '(self: Tensor, startDims: number | readonly number[], p?: number | null | { readonly p?: number | null }) => readonly [Tensor, Tensor]',
    ],
    [
      'f(Tensor self, int dim=0, bool keepdim=False) -> any',
      '(self: Tensor, dim?: number | { readonly dim?: number; readonly keepdim?: boolean }, keepdim?: boolean | { readonly keepdim?: boolean }) => Tensor | readonly Tensor[]',
    ],
    ['f(Tensor self, *, Scalar alpha=1) -> ()', '(self: Tensor, options?: { readonly alpha?: number | ComplexNumber }) => void'],
    [
      'f(Tensor self, *, int size, Scalar fill=1) -> Tensor',
      '(self: Tensor, options: { readonly size: number; readonly fill?: number | ComplexNumber }) => Tensor',
    ],
  ])('%s', (schema, signature) => expect(written(schema)).toBe(signature))

  it('numbers in the place of tensors where the operator computes element by element', () => {
    const schema = 'f(Tensor a, Tensor b, Tensor self) -> Tensor'
    expect(written(schema, { pointwise: true })).toBe('(a: Tensor, b: Tensor | number | ComplexNumber, self: Tensor) => Tensor')
    expect(written(schema, { pointwise: true, numberFirst: true })).toBe(
      '(a: Tensor | number | ComplexNumber, b: Tensor | number | ComplexNumber, self: Tensor) => Tensor',
    )
  })

  it('an interface for more than three options', () => {
    const { calls, interfaces } = signatureOf({
      constant: 'blur_',
      schema: 'blur_(Tensor self, int a=1, int b=2, int c=3, *, bool d=True) -> Tensor',
      pointwise: false,
      numberFirst: false,
    })
    expect(calls[0]?.parameters).toEqual([
      'self: Tensor',
      'a?: number | BlurOptions',
      'b?: number | BlurOptions',
      'c?: number | BlurOptions',
      'options?: BlurOptions',
    ])
    expect(interfaces).toEqual([
      'export interface BlurOptions {\n  readonly a?: number\n  readonly b?: number\n  readonly c?: number\n  readonly d?: boolean\n}',
    ])
  })

  it('an error for a type that it cannot read', () => {
    expect(() => written('f(Tenser self) -> Tensor')).toThrow(
      "the schema 'f(Tenser self) -> Tensor' has an argument 'Tenser self' that cannot be read",
    )
  })
})

describe('a declared type gives', () => {
  const methods = (type: string, text = ''): string[] =>
    signaturesIn(type, text).map((call) => {
      const { parameters, result } = asMethod(call)
      return `(${parameters.join(', ')}): ${result}`
    })

  it.each([
    [
      '(self: Tensor, ...size: readonly (number | readonly number[])[]) => Tensor',
      '',
      ['(...size: readonly (number | readonly number[])[]): Tensor'],
    ],
    [
      '{\n  (self: Tensor): Tensor\n  /** Of two. */\n  (self: Tensor, fn: (x: number, y: number) => number): readonly [Tensor, Tensor]\n}',
      '',
      ['(): Tensor', '(fn: (x: number, y: number) => number): readonly [Tensor, Tensor]'],
    ],
    [
      'Extreme',
      'type Extreme = {\n  (self: Tensor): Tensor\n  (self: Tensor, dim: number): Tensor\n}\n\nconst a = 1\n',
      ['(): Tensor', '(dim: number): Tensor'],
    ],
    ['Extreme', 'export interface Extreme {\n  (self: Tensor): Tensor\n}\n', ['(): Tensor']],
    ['Moment<readonly Tensor[]>', 'type Moment<R> = (\n  self: Tensor,\n  dim?: number,\n) => R\n\n', ['(dim?: number): readonly Tensor[]']],
  ])('%s', (type, text, expected) => expect(methods(type, text)).toEqual(expected))

  it('an error if it is not there', () => expect(() => methods('Gone')).toThrow('there is no type Gone in the same file'))
})

describe('the operators', () => {
  const byPath = new Map(builtInOps().map((op) => [`${op.qualname.slice(0, op.qualname.lastIndexOf('.'))}.${op.fn.name}`, op]))
  const declared = findOperators().filter(({ type }) => type === null)

  it('are declared by their schema, most of them', () => expect(declared.length).toBeGreaterThan(300))

  test.each(declared.map((one): [string, (typeof declared)[number]] => [`${one.namespace}.${one.name}`, one]))(
    '%s: the types admit numbers for tensors where calls do, and the same names',
    (path, one) => {
      const op = byPath.get(path)
      if (op === undefined) throw new Error(`no operator ${path}`)
      const { args } = op.schema
      const [{ parameters } = { parameters: [] }] = signatureOf(one).calls
      const positional = args.filter((arg) => !arg.kwargOnly)
      expect(parameters.slice(0, positional.length).map((text) => /^\w+/.exec(text)?.[0])).toEqual(positional.map(({ name }) => name))
      const numbers = args.flatMap(({ name }, i) => (takesNumber(op, i) ? [name] : []))
      expect(parameters.filter((text) => /: Tensor \| number\b/.test(text)).map((text) => /^\w+/.exec(text)?.[0])).toEqual(numbers)
    },
  )
})

test('what TypeScript computes from a schema admits no call that the generated type refuses', () => {
  expectTypeOf<Op['add']>().toExtend<CallOf<'add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor', 'promote'>>()
  expectTypeOf<Op['frexp']>().toExtend<CallOf<'frexp.Tensor(Tensor self) -> (Tensor, Tensor)'>>()
  expectTypeOf<Op['sub']>().not.toExtend<CallOf<'sub.Tensor(Tensor self, str other) -> Tensor'>>()
})
