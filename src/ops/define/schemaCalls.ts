// PyTorch's schema language at type level, continued from schemaTypes.ts: how an operator is called, and its arguments and gradients by name. Operators that a
// program defines (torch.library) get their types from here.
//
//     '(Tensor x, Tensor weight, *, float eps=1e-05) -> Tensor'
//     CallOf        (x: Tensor, weight: Tensor, options?: { eps?: number }) => Tensor
//     InputsOf      { x: Tensor, weight: Tensor, eps: number }
//     GradientsOf   { x?: Tensor | null, weight?: Tensor | null }
import type { Tensor } from '../../tensor/index.ts'
import type { ArgumentGradient, ArgumentTexts, ArgumentValue, NameOf, OrNumber, PerResult, ResultOf, Split } from './schemaTypes.ts'

type Texts<S extends string> = ArgumentTexts<S>[number]

/** The texts of the arguments before `*`, which may be given by position. */
type PositionalTexts<S extends string> = S extends `${string}(${infer Arguments}) -> ${string}`
  ? Arguments extends `*, ${string}`
    ? []
    : Arguments extends `${infer Before}, *, ${string}`
      ? Split<Before>
      : Split<Arguments>
  : never

/** The value of an argument after the first. `Pointwise` is the operator's promotion rule, never for one that is not pointwise. */
type LaterValue<Text, Pointwise> = [Pointwise] extends [never] ? ArgumentValue<Text> : OrNumber<Text, ArgumentValue<Text>>

/** The tuples of arguments by position: those with defaults may be left out from the end. */
type Positions<Texts extends readonly string[], Pointwise, First = true> = Texts extends readonly [
  infer Text,
  ...infer Rest extends readonly string[],
]
  ?
      | [First extends true ? ArgumentValue<Text> : LaterValue<Text, Pointwise>, ...Positions<Rest, Pointwise, false>]
      | (Text extends `${string}=${string}` ? [] : never)
  : []

type Optional<S extends string, Pointwise> = {
  readonly [Text in Texts<S> as Text extends `${string}=${string}` ? NameOf<Text> : never]?: LaterValue<Text, Pointwise>
}
type Required<S extends string> = {
  readonly [Text in Exclude<Texts<S>, PositionalTexts<S>[number] | `${string}=${string}`> as NameOf<Text>]: ArgumentValue<Text>
}

/** The trailing options object: none, optional or required. */
type Options<S extends string, Pointwise> = keyof Required<S> extends never
  ? keyof Optional<S, Pointwise> extends never
    ? []
    : [options?: Optional<S, Pointwise>]
  : [options: Optional<S, Pointwise> & Required<S>]

type IsSchema<S extends string> = string extends S ? false : true

/** The function of an operator. */
export type CallOf<S extends string, Pointwise = never> =
  IsSchema<S> extends true
    ? (...args: [...Positions<PositionalTexts<S>, Pointwise>, ...Options<S, Pointwise>]) => ResultOf<S>
    : // eslint-disable-next-line typescript/no-explicit-any -- a schema that is known only at run time allows any arguments
      (...args: any[]) => unknown

/** The arguments of a call by name. */
export type InputsOf<S extends string, Pointwise = never> = {
  readonly [Text in Texts<S> as NameOf<Text>]: Text extends ArgumentTexts<S>[0] ? ArgumentValue<Text> : LaterValue<Text, Pointwise>
}

/** Names of the arguments that can have gradients: tensors and lists of tensors. */
type DifferentiableName<Text> =
  Tensor extends ArgumentValue<Text> ? NameOf<Text> : ArgumentValue<Text> extends readonly Tensor[] | null ? NameOf<Text> : never

/** The gradients of the arguments by name; one that is left out is null. */
export type GradientsOf<S extends string> = {
  readonly [Text in Texts<S> as DifferentiableName<Text>]?: ArgumentGradient<ArgumentValue<Text>>
}

/** What a backward knows about the call. PyTorch's `ctx`. */
export interface BackwardContext<S extends string = string, Pointwise = never> {
  /** The arguments of the call, by name. */
  readonly inputs: InputsOf<S, Pointwise>
  /** The results of the call, in order. */
  readonly outputs: PerResult<S, Tensor>
  /** Whether the gradient of an argument is wanted, by name. */
  readonly needsInputGrad: { readonly [Text in Texts<S> as DifferentiableName<Text>]: boolean }
}

/** The gradients of the arguments from those of the results, which are zeros for a result that the loss does not depend on. */
export type BackwardOf<S extends string, Pointwise = never> = (
  ctx: BackwardContext<S, Pointwise>,
  ...grads: Extract<PerResult<S, Tensor>, readonly unknown[]>
) => GradientsOf<S>
