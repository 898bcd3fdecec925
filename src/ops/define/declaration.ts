// What an operator declares about itself. The types of its rules follow from its schema.
import type {
  Arg,
  AutocastClass,
  BatchRule,
  DTypeSet,
  OnnxRule,
  OpDef,
  OpTag,
  PromotionRule,
  ReductionRule,
  Result,
  ResultSpec,
} from '../../dispatch/index.ts'
import type { Expr } from '../../kernels/index.ts'
import type { TargetFunction } from '../../protocol/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import type { ArgumentNames, ArgumentsOf, DerivativeOf, KernelArgumentsOf, OperandsOf, ResultOf, TupleHint } from './schemaTypes.ts'

/** A public function of the operator table; `op` is its definition. */
export type OpFunction<F extends TargetFunction = TargetFunction> = F & { readonly op: OpDef }

/** How a pointwise operator computes one element. */
export interface PointwiseDeclaration<S extends string, Promotion, Baked> {
  readonly promotion: Promotion
  /** The common dtypes of operands that it is defined for; for others it throws DTypeError. Default: all. */
  readonly dtypes?: DTypeSet
  /** Names of numeric arguments that `compute` gets as numbers instead of Exprs, because it looks at their values. */
  readonly baked?: readonly (Baked & ArgumentNames<S>)[]
  readonly compute: (...operands: OperandsOf<S, Baked>) => Expr
}

/** One operator. `S` is the text of its schema; `Promotion` and `Baked` come from its pointwise rule. */
export interface OpDeclaration<S extends string = string, Promotion extends PromotionRule = never, Baked extends string = never> {
  /** PyTorch's schema. Arguments after `*` are given in the trailing options object; the others by position or in the options object. */
  readonly schema: S
  /**
   * Where the public function lives: 'torch' (default), 'torch.nn.functional', 'torch.Tensor' (for methods that are not functions of torch),
   * 'torch.ops.tensorfx' (internal primitives, e.g. backward operators), or a namespace of your own.
   */
  readonly namespace?: string
  /** Whether Tensor gets it as a method, under the schema's name in camelCase. */
  readonly method?: boolean
  /**
   * Whether the operator has an in-place form (`add_` for `add`), which is generated: as a method of Tensor, or also as a function in the operator's namespace.
   * `npm run generate` reads it from the source.
   */
  readonly inPlace?: 'method' | 'function'
  readonly tags?: readonly OpTag[]
  /** Shapes and dtypes of the results. Derived for pointwise, reduction and in-place operators; otherwise `decompose` can stand in for it. */
  readonly meta?: (...args: ArgumentsOf<S>) => ResultSpec
  readonly pointwise?: PointwiseDeclaration<S, Promotion, Baked>
  readonly reduction?: ReductionRule
  readonly kernel?: (...args: KernelArgumentsOf<S>) => ResultOf<S> | TupleHint
  /** Whether `kernel` gets float32 copies of float16 and bfloat16 tensors, and its results are rounded once, at the end. */
  readonly halvesInFloat32?: true
  /**
   * The arguments whose matrices `kernel` takes one by one, for what no loops over elements compute: factors, inverses, determinants. From it follow `halvesInFloat32`, `vmap`
   * (further leading dimensions) and `onnx` (ONNX has no such operators).
   */
  readonly matrices?: readonly ArgumentNames<S>[]
  readonly decompose?: (...args: ArgumentsOf<S>) => Result
  /** The vector-Jacobian product, written with operators. Leave it out for composites. */
  readonly derivative?: DerivativeOf<S, Promotion>
  /** For an in-place operator such as `relu_`: the public function of the functional one. */
  readonly functional?: OpFunction
  /**
   * For a view: a copy of its argument 0 with `value`, of the shape of the view, in the place of the view. By it a write to a view becomes a new value of what it
   * is a view of. Without it writes to such views cannot be traced.
   */
  readonly scatter?: (value: Tensor, ...args: ArgumentsOf<S>) => Tensor
  readonly dynamicScalars?: readonly string[]
  /** For an operator that takes indices, see `IndexRule`. */
  readonly indices?: {
    readonly argument: ArgumentNames<S>
    readonly check: (...args: KernelArgumentsOf<S>) => void
  }
  /** How vmap computes a whole batch. It follows for operators that compute element by element, reduce, write in place or decompose; these state it where they have a better one. */
  readonly vmap?: BatchRule
  /** How the operator becomes nodes of an ONNX model. It follows as `vmap` does. */
  readonly onnx?: OnnxRule
  /** What autocast does with the arguments. It follows as `vmap` does: 'as is'. */
  readonly autocast?: AutocastClass
  /** URL of the module that registers the operator (`import.meta.url`), for operators that are not tensorfx's own. See TargetInfo. */
  readonly module?: string
  /**
   * How a symbolic trace records a call of a function that PyTorch writes in Python: 'keywords', arguments with defaults become keywords, given or not;
   * 'method', as a call of the method of that name. Default: as the user wrote it.
   */
  readonly recordAs?: 'keywords' | 'method'
  /** See `OpDef.prepare`. */
  readonly prepare?: (args: readonly Arg[]) => readonly Arg[]
  /** The operator of which this one is another name. */
  readonly aliasOf?: OpFunction
  /** What a call with only the first argument computes instead: PyTorch's `torch.where(condition)`. */
  readonly alone?: (self: Tensor) => unknown
  /** Runs before each call, for what the operator changes besides its result: PyTorch's `max_norm` of embeddings. Captures record the operators that it calls. */
  readonly before?: (...args: KernelArgumentsOf<S>) => void
}

/**
 * The declaration of an operator of tensorfx itself: it says what vmap, the exporter to ONNX and autocast do with it, or that they have no rule and why, unless that follows from
 * how it computes.
 */
export type OwnDeclaration<S extends string, Promotion extends PromotionRule, Baked extends string> = OpDeclaration<S, Promotion, Baked> &
  (
    | { readonly pointwise: object }
    | { readonly reduction: object }
    | { readonly functional: object }
    | { readonly decompose: object }
    | { readonly matrices: readonly string[]; readonly autocast: AutocastClass }
    // The last one is that which TypeScript speaks of if none fits: it names the fact that is missing.
    | { readonly vmap: BatchRule; readonly onnx: OnnxRule; readonly autocast: AutocastClass }
  )
