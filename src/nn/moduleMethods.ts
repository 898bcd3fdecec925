// Methods of modules that graphs without tensors can do without: other dtypes, and hooks on gradients and state dicts.
import { Function, noGrad } from '../autograd/index.ts'
import type { FunctionContext } from '../autograd/index.ts'
import { isDevice, moved } from '../dispatch/index.ts'
import { ArgumentError } from '../errors/index.ts'
import { dtypeInfo, isDType } from '../kernels/index.ts'
import type { DType } from '../kernels/index.ts'
import { Module, addHook, setAttribute } from '../module/index.ts'
import type { LoadStateResult, RemovableHandle } from '../module/index.ts'
import { to } from '../ops/index.ts'
import { checkCallable, checkMethod, isCallable, valueText } from '../protocol/index.ts'
import type { TensorLike } from '../protocol/index.ts'
import { treeFlatten, treeUnflatten } from '../pytree/index.ts'
import { Tensor } from '../tensor/index.ts'
import type { Device } from '../tensor/index.ts'

/** Called in backward with the gradients of a module's tensor arguments and of its results. A returned array replaces the former. */
export type FullBackwardHook = (
  module: Module,
  gradInput: readonly (Tensor | null)[],
  gradOutput: readonly (Tensor | null)[],
  // eslint-disable-next-line typescript/no-invalid-void-type -- a hook may return nothing
) => readonly (Tensor | null)[] | null | undefined | void

/** Sees a state dict, a Map by dotted name; `prefix` is where the names of the module's own start. */
export type StateHook = (module: Module, state: Map<string, TensorLike>, prefix: string) => void

declare module '../module/module.ts' {
  interface Module {
    /**
     * Converts all floating-point parameters and buffers, in this module and below, or moves all of them to a device ('cpu'; 'webgpu' with tensorfx/webgpu). They become new tensors: make optimizers
     * afterwards. Throws ArgumentError for anything but a floating-point dtype or a device. PyTorch's `Module.to`.
     */
    to(target: DType | Device, dtype?: DType): this
    /** `to('float32')` */
    float(): this
    /** `to('float64')` */
    double(): this
    /** `to('float16')` */
    half(): this
    /** `to('bfloat16')` */
    bfloat16(): this
    /**
     * Registers a hook that runs in backward when the gradients of the module's arguments are known. If no argument requires grad, it runs when the gradients of the
     * results are known, with a gradInput of null for each argument, and the first such call warns. PyTorch's `register_full_backward_hook`.
     */
    registerFullBackwardHook(hook: FullBackwardHook): RemovableHandle
    /** Registers a hook that may change the result of `stateDict()`. PyTorch's `register_state_dict_post_hook`. */
    registerStateDictPostHook(hook: StateHook): RemovableHandle
    /** Registers a hook that may change what `loadStateDict` is about to load. PyTorch's `register_load_state_dict_pre_hook`. */
    registerLoadStateDictPreHook(hook: StateHook): RemovableHandle
    /** Registers a hook that runs when values were loaded. PyTorch's `register_load_state_dict_post_hook`. */
    registerLoadStateDictPostHook(hook: (module: Module, result: LoadStateResult) => void): RemovableHandle
  }
}

function convert(module: Module, dtype: DType): void {
  if (!isDType(dtype) || !dtypeInfo[dtype].floating)
    throw new ArgumentError(`Module.to: expected a floating-point dtype such as 'float16' or a device ('cpu', 'webgpu'), got ${valueText(dtype)}.`)
  replaceTensors(
    module,
    (tensor) => dtypeInfo[tensor.dtype].floating && tensor.dtype !== dtype,
    (tensor) => to(tensor, dtype),
  )
}

/** Gives the module and those below other parameters and buffers, in place of those that are concerned. */
function replaceTensors(module: Module, concerns: (tensor: Tensor) => boolean, other: (tensor: Tensor) => Tensor): void {
  const made = new Map<Tensor, Tensor>()
  for (const part of module.modules()) {
    for (const [name, tensor] of [...part.ownParameters(), ...part.ownBuffers()]) {
      if (!(tensor instanceof Tensor) || !concerns(tensor)) continue
      const known = made.get(tensor)
      const next = known ?? noGrad(() => (tensor.isParameter ? other(tensor).asParameter(tensor.requiresGrad) : other(tensor)))
      made.set(tensor, next)
      setAttribute(part, name, next)
    }
  }
}

type Seen = (grads: readonly (Tensor | null)[]) => readonly (Tensor | null)[]

/** Passes tensors on, and shows their gradients to a function, which may replace them. */
class Watch extends Function {
  static override forward(ctx: FunctionContext, seen: Seen, ...tensors: readonly Tensor[]): readonly Tensor[] {
    ctx['seen'] = seen
    return tensors
  }

  static override backward(ctx: FunctionContext, ...grads: readonly Tensor[]): readonly (Tensor | null)[] {
    const { seen } = ctx
    const replaced: unknown = isCallable(seen) ? Reflect.apply(seen, undefined, [grads]) : grads
    return [null, ...(Array.isArray(replaced) ? replaced : grads)]
  }
}

/** The value with its tensors watched. */
function watched(value: unknown, seen: Seen): unknown {
  const { leaves, spec } = treeFlatten(value)
  const tensors = leaves.filter((leaf) => leaf instanceof Tensor && dtypeInfo[leaf.dtype].floating)
  if (tensors.length === 0) return value
  const result = Watch.apply(seen, ...tensors)
  const passed = result instanceof Tensor ? [result] : result
  return treeUnflatten(
    leaves.map((leaf) => passed[tensors.indexOf(leaf)] ?? leaf),
    spec,
  )
}

/** PyTorch's warning comes once, too. */
let warnedOfConstants = false

function backwardHook(module: Module, hook: FullBackwardHook): RemovableHandle {
  checkCallable('registerFullBackwardHook', 'hook', hook)
  // A module may call itself: each call has gradients of its own.
  interface Call {
    gradOutput: readonly (Tensor | null)[]
    /** How many arguments there are, if no gradient can reach any of them: then the hook runs when those of the results are known. */
    readonly constants: number | null
  }
  const calls: Call[] = []
  const runEarly = (count: number, gradOutput: readonly (Tensor | null)[]): void => {
    if (!warnedOfConstants)
      console.warn(
        'Full backward hook is firing when gradients are computed with respect to module outputs since no inputs require gradients. gradInput is null for each argument.',
      )
    warnedOfConstants = true
    const returned = hook(
      module,
      Array.from({ length: count }, () => null),
      gradOutput,
    )
    if (returned?.some((grad) => grad !== null) === true)
      throw new ArgumentError(
        'registerFullBackwardHook: no argument of this call requires grad, so the hook must return nothing, or null for each gradient; it returned a gradient. Call requiresGrad_() on the argument whose gradient it is.',
      )
  }
  const before = module.registerForwardPreHook((_, args) => {
    const isConstant = !treeFlatten(args).leaves.some((leaf) => leaf instanceof Tensor && leaf.requiresGrad)
    const call: Call = { gradOutput: [], constants: isConstant ? args.length : null }
    calls.push(call)
    if (isConstant) return args
    const inside = watched(args, (gradInput) => hook(module, gradInput, call.gradOutput) ?? gradInput)
    return Array.isArray(inside) ? inside : args
  })
  const after = module.registerForwardHook((_module, _args, output) => {
    const call = calls.pop()
    return watched(output, (gradOutput) => {
      if (call === undefined) return gradOutput
      if (call.constants === null) call.gradOutput = gradOutput
      else runEarly(call.constants, gradOutput)
      return gradOutput
    })
  })
  return {
    remove: () => {
      before.remove()
      after.remove()
    },
  }
}

/** Methods that the composition root gives to Module. */
export const moduleMethods: object = {
  to(this: Module, target: DType | Device, dtype?: DType): Module {
    checkMethod(this, 'Module.to', arguments, 2)
    if (dtype !== undefined) convert(this, dtype)
    if (!isDevice(target)) convert(this, target)
    else
      replaceTensors(
        this,
        (tensor) => tensor.device !== target,
        (tensor) => moved('Module.to', tensor, target),
      )
    return this
  },
  float(this: Module): Module {
    checkMethod(this, 'float', arguments, 0)
    return this.to('float32')
  },
  double(this: Module): Module {
    checkMethod(this, 'double', arguments, 0)
    return this.to('float64')
  },
  half(this: Module): Module {
    checkMethod(this, 'half', arguments, 0)
    return this.to('float16')
  },
  bfloat16(this: Module): Module {
    checkMethod(this, 'bfloat16', arguments, 0)
    return this.to('bfloat16')
  },
  registerFullBackwardHook(this: Module, hook: FullBackwardHook): RemovableHandle {
    checkMethod(this, 'registerFullBackwardHook', arguments, 1)
    checkCallable('registerFullBackwardHook', 'hook', hook)
    return backwardHook(this, hook)
  },
  registerStateDictPostHook(this: Module, hook: StateHook): RemovableHandle {
    checkMethod(this, 'registerStateDictPostHook', arguments, 1)
    return addHook(this, 'stateDict', hook)
  },
  registerLoadStateDictPreHook(this: Module, hook: StateHook): RemovableHandle {
    checkMethod(this, 'registerLoadStateDictPreHook', arguments, 1)
    return addHook(this, 'loadStateDictPre', hook)
  },
  registerLoadStateDictPostHook(this: Module, hook: (module: Module, result: LoadStateResult) => void): RemovableHandle {
    checkMethod(this, 'registerLoadStateDictPostHook', arguments, 1)
    return addHook(this, 'loadStateDictPost', hook)
  },
}
