// autocast: operators run in the dtype that suits them. Matrix products and convolutions get their arguments in half precision, losses and the like in float32; the class of each operator
// is a field of its definition. The casts are operators of the program, above autograd: gradients come back in the dtype of what was cast.
/// <reference lib="esnext.disposable" preserve="true" />
import { dispatch, dispatchState } from '../dispatch/index.ts'
import type { Arg, AutocastHandler, OpDef } from '../dispatch/index.ts'
import { ArgumentError } from '../errors/index.ts'
import { dtypeInfo } from '../kernels/index.ts'
import type { DType } from '../kernels/index.ts'
import { to } from '../ops/index.ts'
import { checkArgument, checkCount, checkOptions, isCallable, isFunction, valueText } from '../protocol/index.ts'
import { Tensor } from '../tensor/index.ts'
import { versionOf } from './versions.ts'

/** What autocast computes in. */
export type AutocastDtype = 'bfloat16' | 'float16'

/** Options of {@link autocast}. */
export interface AutocastOptions {
  /** What operators that gain from half precision compute in. Default: that of the autocast around it, and `'bfloat16'` outside. */
  readonly dtype?: AutocastDtype
  /** False switches it off within another one. Default true. */
  readonly enabled?: boolean
  /** Whether a weight is cast once, and not for each operator that reads it. Default: as around it, and true outside. */
  readonly cacheEnabled?: boolean
}

interface Settings {
  readonly enabled: boolean
  readonly dtype: AutocastDtype
  readonly cacheEnabled: boolean
}

let settings: Settings = { enabled: false, dtype: 'bfloat16', cacheEnabled: true }
/** How many autocasts are around the program. */
let nesting = 0

/** Weights in half precision, with the version of what was cast. */
const castWeights = new Map<Tensor, { readonly dtype: DType; readonly version: number; readonly cast: Tensor }>()

/** Whether a weight's cast may be used again: a leaf of the tape, whose gradient the cast hands on, outside of captures. */
const isKept = (tensor: Tensor): boolean =>
  settings.cacheEnabled &&
  dispatchState.mode === null &&
  dispatchState.gradEnabled &&
  tensor.dtype === 'float32' &&
  tensor.requiresGrad &&
  tensor.isLeaf

function cast(tensor: Tensor, dtype: DType): Tensor {
  if (tensor.dtype === dtype) return tensor
  if (dtype === 'float32' || !isKept(tensor)) return to(tensor, dtype)
  const known = castWeights.get(tensor)
  if (known !== undefined && known.dtype === dtype && known.version === versionOf(tensor)) return known.cast
  const made = to(tensor, dtype)
  castWeights.set(tensor, { dtype, version: versionOf(tensor), cast: made })
  return made
}

/** Whether autocast casts a tensor: float64 and integers stay as they are. */
const isCast = (arg: Arg): arg is Tensor => arg instanceof Tensor && dtypeInfo[arg.dtype].floating && arg.dtype !== 'float64'

const castAll = (args: readonly Arg[], dtype: DType): readonly Arg[] =>
  args.map((arg): Arg => (isCast(arg) ? cast(arg, dtype) : isList(arg) ? castAll(arg, dtype) : arg))

const isList = (arg: Arg): arg is readonly Arg[] => Array.isArray(arg)

/** Whether any of the tensors that autocast casts has more than half precision. */
const anyWide = (args: readonly Arg[], half: DType): boolean =>
  args.some((arg) => (isCast(arg) ? arg.dtype !== half : isList(arg) && anyWide(arg, half)))

/** The dtype that an operator of a class computes in. */
function dtypeFor(op: OpDef, args: readonly Arg[], half: DType): DType {
  if (op.autocast === 'half') return half
  return op.autocast === 'float32' || anyWide(args, half) ? 'float32' : half
}

const handler: AutocastHandler = (op, args) => {
  const outer = dispatchState.autocast
  // What the operator itself calls gets the dtype that it has chosen.
  dispatchState.autocast = null
  try {
    // What is written to keeps its dtype, and so does the other side.
    if (op.autocast === 'untouched' || op.functional !== null || op.tags.has('mutates')) return dispatch(op, args)
    return dispatch(op, castAll(args, dtypeFor(op, args, settings.dtype)))
  } finally {
    dispatchState.autocast = outer
  }
}

/** Makes these the settings. */
function set(next: Settings): void {
  settings = next
  dispatchState.autocast = next.enabled ? handler : null
}

/** The settings that options mean here. Throws ArgumentError for a dtype that autocast does not compute in. */
function settingsOf(where: string, options: AutocastOptions): Settings {
  if (typeof options === 'string')
    throw new ArgumentError(
      `${where}: it takes no device, and computes where tensors are; write torch.autocast({ dtype: 'bfloat16' }, () => model(x)), got ${valueText(options)}.`,
    )
  if (isFunction(options)) throw new ArgumentError(`${where}: options come first: write torch.autocast({}, fn), got ${valueText(options)}.`)
  checkOptions(where, options, { dtype: true, enabled: 'boolean', cacheEnabled: 'boolean' })
  const { dtype = settings.dtype, enabled = true, cacheEnabled = settings.cacheEnabled } = options
  if (dtype !== 'bfloat16' && dtype !== 'float16')
    throw new ArgumentError(`${where}: option 'dtype' must be 'bfloat16' or 'float16', got ${valueText(dtype)}.`)
  return { enabled, dtype, cacheEnabled }
}

/** Begins an autocast. The result ends it. */
function begin(next: Settings): () => void {
  const before = settings
  nesting++
  set(next)
  let isDone = false
  return () => {
    if (isDone) return
    isDone = true
    set(before)
    if (--nesting === 0) castWeights.clear()
  }
}

/** What `autocast(options)` returns: it begins where `using` asks for the method that ends it. */
class AutocastScope implements Disposable {
  readonly #settings: Settings
  #end: (() => void) | null = null

  constructor(next: Settings) {
    this.#settings = next
  }

  get [Symbol.dispose](): () => void {
    return (this.#end ??= begin(this.#settings))
  }
}

/**
 * Runs `fn` with automatic mixed precision and returns its result: matrix products, convolutions and attention compute in half precision, losses and other operators that need it in
 * float32, and the rest in the dtypes of their arguments. Which operator does what is PyTorch's list for the CPU. Parameters stay float32, and so do their gradients. Without `fn`, the
 * scope of a block: `using _ = torch.autocast({ dtype: 'bfloat16' })`. Run the backward outside. It ends when `fn` returns, so for an async function it covers the part before the first
 * `await`. PyTorch's `torch.autocast`.
 *
 * @throws ArgumentError for another dtype than `'bfloat16'` and `'float16'`.
 * @example
 * const loss = torch.autocast({ dtype: 'bfloat16' }, () => nn.functional.crossEntropy(model(x), y))
 * loss.backward()
 */
export function autocast(options?: AutocastOptions): Disposable
export function autocast<T>(options: AutocastOptions, fn: () => T): T
export function autocast<T>(options: AutocastOptions = {}, fn?: () => T): T | Disposable {
  checkCount('torch.autocast', arguments, 2)
  const next = settingsOf('torch.autocast', options)
  if (fn === undefined) return new AutocastScope(next)
  checkArgument(isCallable(fn), 'torch.autocast', 'fn', 'a function, such as () => model(x)', fn)
  const end = begin(next)
  try {
    return fn()
  } finally {
    end()
  }
}

/** Whether operators are cast at the moment. PyTorch's `torch.is_autocast_enabled`. */
export function isAutocastEnabled(): boolean {
  checkCount('torch.isAutocastEnabled', arguments, 0)
  return settings.enabled
}

/** What operators of half precision compute in under autocast. PyTorch's `torch.get_autocast_dtype`. */
export function getAutocastDtype(): AutocastDtype {
  checkCount('torch.getAutocastDtype', arguments, 0)
  return settings.dtype
}

/** Whether weights are cast once. PyTorch's `torch.is_autocast_cache_enabled`. */
export function isAutocastCacheEnabled(): boolean {
  checkCount('torch.isAutocastCacheEnabled', arguments, 0)
  return settings.cacheEnabled
}

/** Forgets the weights that were cast. PyTorch's `torch.clear_autocast_cache`. */
export function clearAutocastCache(): void {
  checkCount('torch.clearAutocastCache', arguments, 0)
  castWeights.clear()
}

/** Runs `fn` as under the autocast of now, later. What recomputes a forward uses it. */
export function underAutocastOfNow(): <T>(fn: () => T) => T {
  const then = settings
  return (fn) => {
    if (then === settings) return fn()
    const end = begin(then)
    try {
      return fn()
    } finally {
      end()
    }
  }
}

/** The settings as a text: off, or the dtype. */
export const autocastText = (): string => (settings.enabled ? settings.dtype : 'off')

/** What customFwd says to customBwd, by the context of the call. */
const ofForward = new WeakMap<object, Settings>()

/** Casts the floating-point tensors among nested arguments. */
const castValues = (value: unknown, dtype: DType): unknown =>
  value instanceof Tensor
    ? isCast(value)
      ? cast(value, dtype)
      : value
    : Array.isArray(value)
      ? value.map((item: unknown) => castValues(item, dtype))
      : value

/**
 * The `forward` of a `torch.autograd.Function` for autocast: with `castInputs`, and under autocast, its floating-point tensors are cast to that dtype and it runs without autocast;
 * otherwise it runs as it is. Its `backward` must be wrapped by {@link customBwd}. PyTorch's `torch.amp.custom_fwd`.
 *
 * @example
 * class Square extends torch.autograd.Function {
 *   static override forward = customFwd((ctx, x) => { ctx.saveForBackward(x); return x.mul(x) }, { castInputs: 'float32' })
 *   static override backward = customBwd((ctx, g) => { const [x] = ctx.savedTensors; return g.mul(x).mul(2) })
 * }
 */
export function customFwd<C extends object, A extends readonly unknown[], R>(
  forward: (ctx: C, ...args: A) => R,
  options: { readonly castInputs?: DType | null } = {},
): (ctx: C, ...args: A) => R {
  checkCount('torch.amp.customFwd', arguments, 2)
  checkArgument(isFunction(forward), 'torch.amp.customFwd', 'forward', 'a function (ctx, ...args)', forward)
  checkOptions('torch.amp.customFwd', options, { castInputs: true })
  const { castInputs = null } = options
  if (castInputs !== null && !(Object.hasOwn(dtypeInfo, castInputs) && dtypeInfo[castInputs].floating))
    throw new ArgumentError(`torch.amp.customFwd: option 'castInputs' must be a floating-point dtype, got ${valueText(castInputs)}.`)
  return (ctx, ...args) => {
    if (castInputs === null || !settings.enabled) {
      ofForward.set(ctx, settings)
      return forward(ctx, ...args)
    }
    ofForward.set(ctx, { ...settings, enabled: false })
    const end = begin({ ...settings, enabled: false })
    try {
      // Tensors stay tensors, and all else is as it was.
      return forward(ctx, ...(args.map((arg) => castValues(arg, castInputs)) as unknown as A))
    } finally {
      end()
    }
  }
}

/** The `backward` that belongs to {@link customFwd}: it runs under the autocast of its forward. PyTorch's `torch.amp.custom_bwd`. */
export function customBwd<C extends object, A extends readonly unknown[], R>(backward: (ctx: C, ...grads: A) => R): (ctx: C, ...grads: A) => R {
  checkCount('torch.amp.customBwd', arguments, 1)
  checkArgument(isFunction(backward), 'torch.amp.customBwd', 'backward', 'a function (ctx, ...grads)', backward)
  return (ctx, ...grads) => {
    const end = begin(ofForward.get(ctx) ?? settings)
    try {
      return backward(ctx, ...grads)
    } finally {
      end()
    }
  }
}
