// PyTorch's schema language at type level: the TypeScript types of an operator's arguments, results and gradients, read from the text of its schema.
//
//     'topk(Tensor self, int k, int dim=-1, bool largest=True) -> (Tensor, Tensor)'
//     ArgumentsOf  [Tensor, number, number, boolean]
//     ResultOf     readonly [Tensor, Tensor]
//
// protocol/schema.ts parses the same language at run time. The texts here are split at ', ', so a default list is written without spaces: [1,1].
import type { DType, Expr } from '../../kernels/index.ts'
import type { Size } from '../../protocol/index.ts'
import type { Generator, Tensor } from '../../tensor/index.ts'

/** The values that fill each base type. The schema does not check `any`: a rule has to. */
interface BaseValues {
  Tensor: Tensor
  Scalar: number
  int: number
  float: number
  bool: boolean
  str: string
  ScalarType: DType
  Generator: Generator
  any: unknown
}

/** Shows up in place of an argument whose type in the schema is misspelt. */
interface UnknownSchemaType<Text> {
  readonly unknownSchemaType: Text
}

/** 'Tensor self, *, int dim=0' -> ['Tensor self', 'int dim=0'] */
export type Split<Text extends string> = Text extends `*, ${infer Rest}`
  ? Split<Rest>
  : Text extends `${infer First}, ${infer Rest}`
    ? [First, ...Split<Rest>]
    : Text extends ''
      ? []
      : [Text]

export type ArgumentTexts<S extends string> = S extends `${string}(${infer Arguments}) -> ${string}` ? Split<Arguments> : never
type ReturnText<S extends string> = S extends `${string}) -> ${infer Return}` ? Return : never

/** 'int[]? dim=None' -> 'int[]?' */
type TypeText<A> = A extends `${infer Type} ${string}` ? Type : never

type CamelCase<Text extends string> = Text extends `${infer Head}_${infer Tail}` ? `${Head}${Capitalize<CamelCase<Tail>>}` : Text

/** 'Scalar min_value=None' -> 'minValue' */
export type NameOf<A> = A extends `${string} ${infer Name}=${string}`
  ? CamelCase<Name>
  : A extends `${string} ${infer Name}`
    ? CamelCase<Name>
    : never

type TypeValue<Type, S> = Type extends `${infer Inner}?`
  ? TypeValue<Inner, S> | null
  : Type extends `${infer Item}[${string}]`
    ? readonly TypeValue<Item, S>[]
    : Type extends `${infer Inner}(${string})`
      ? TypeValue<Inner, S>
      : Type extends 'SymInt'
        ? S
        : Type extends keyof BaseValues
          ? BaseValues[Type]
          : UnknownSchemaType<Type>

/** 'Tensor? weight=None' -> Tensor | null. `S` is the type of a SymInt, an integer that may be a size of a tensor. */
export type ArgumentValue<A, S = Size> = A extends `${string}=None` ? TypeValue<TypeText<A>, S> | null : TypeValue<TypeText<A>, S>

type Values<A extends readonly string[], S = Size> = { [I in keyof A]: ArgumentValue<A[I], S> }
type ForEach<T extends readonly unknown[], Value> = { [I in keyof T]: Value }

/** What `meta` and `decompose` get: sizes may be symbols. */
export type ArgumentsOf<S extends string> = Values<ArgumentTexts<S>>

/** What `kernel` gets, which runs on real tensors only. */
export type KernelArgumentsOf<S extends string> = Values<ArgumentTexts<S>, number>

/** Names of the arguments, in camelCase. */
export type ArgumentNames<S extends string> = NameOf<ArgumentTexts<S>[number]>

/** One value per result of the schema. */
export type PerResult<S extends string, Value> =
  ReturnText<S> extends infer R
    ? R extends `(${infer Types})`
      ? Readonly<ForEach<Split<Types>, Value>>
      : R extends 'Tensor[]' | 'any'
        ? readonly Value[]
        : readonly [Value]
    : never

/** No value has this type. In a union with a type that depends on a schema, it lets TypeScript infer that an array in a `return` is a tuple. */
export type TupleHint = readonly [never]

/** What `kernel` returns. */
export type ResultOf<S extends string> =
  ReturnText<S> extends infer R
    ? R extends '()'
      ? void
      : R extends `(${string})` | 'Tensor[]'
        ? PerResult<S, Tensor>
        : R extends 'any'
          ? Tensor | readonly Tensor[]
          : Tensor
    : never

/** A pointwise operator takes a number in place of any tensor but the first and `self`. */
export type OrNumber<A, Value> = Value extends Tensor ? (NameOf<A> extends 'self' ? Value : Value | number) : Value
type WithNumbers<A extends readonly string[]> = A extends readonly [infer First, ...infer Rest]
  ? [ArgumentValue<First>, ...{ [I in keyof Rest]: OrNumber<Rest[I], ArgumentValue<Rest[I]>> }]
  : []

/** What `compute` of a pointwise rule gets: an Expr for a tensor or a number, but the number itself where it is baked. */
type Operand<A, Baked> =
  NameOf<A> extends Baked
    ? Exclude<ArgumentValue<A>, Tensor> | (Tensor extends ArgumentValue<A> ? Expr | number : never)
    : ArgumentValue<A> extends infer V
      ? V extends Tensor | number
        ? Expr
        : V
      : never
type Operands<A extends readonly string[], Baked> = { [I in keyof A]: Operand<A[I], Baked> }
export type OperandsOf<S extends string, Baked> = Operands<ArgumentTexts<S>, Baked>

/** Gradients of the results. The only result of an operator always has one, as its derivative is not asked for otherwise. */
export type ResultGradients<S extends string> =
  PerResult<S, Tensor | null> extends readonly [Tensor | null] ? readonly [Tensor] : PerResult<S, Tensor | null>

export type ArgumentGradient<Value> = Tensor extends Value
  ? Tensor | null
  : Value extends readonly Tensor[]
    ? readonly (Tensor | null)[] | null
    : null
type ArgumentGradients<V extends readonly unknown[]> = Readonly<{ [I in keyof V]: ArgumentGradient<V[I]> }>

/** The derivative of an operator; `Pointwise` is the operator's promotion rule, never for one that is not pointwise. */
export type DerivativeOf<S extends string, Pointwise> = (
  grads: ResultGradients<S>,
  ctx: {
    /** The call's arguments, in schema order. */
    readonly args: [Pointwise] extends [never] ? ArgumentsOf<S> : WithNumbers<ArgumentTexts<S>>
    /** The call's results. */
    readonly outputs: PerResult<S, Tensor>
    /** For each argument, whether its gradient is wanted. */
    readonly needs: ForEach<ArgumentsOf<S>, boolean>
  },
) => ArgumentGradients<ArgumentsOf<S>>
