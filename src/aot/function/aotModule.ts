// Modules ahead of time: aotFunction of a module, whose parameters and buffers are inputs of the graph.
import { UnsupportedError } from '../../errors/index.ts'
import { Module, functionalCall } from '../../module/index.ts'
import { checkArgument, checkCount, checkOptions, isModule } from '../../protocol/index.ts'
import { Tensor } from '../../tensor/index.ts'
import { TracedFunction } from './aotFunction.ts'
import type { JointOptions } from './compileJoint.ts'

/** Which call of a module is traced: its tensors by name, who is in training mode, and the arguments. */
type ModuleArgs = readonly [Readonly<Record<string, Tensor>>, readonly boolean[], readonly unknown[]]

function stateOf(module: Module): Readonly<Record<string, Tensor>> {
  const state: Record<string, Tensor> = {}
  for (const [name, value] of [...module.namedParameters(), ...module.namedBuffers()])
    if (value instanceof Tensor) state[name] = value
    else throw new UnsupportedError(`aotModule: ${name} is no Tensor. A tensor subclass cannot be traced.`)
  return state
}

/** A module that runs compiled graphs; `module` is the original, whose parameters, buffers and children it has. */
export class AotModule<M extends Module> extends Module {
  readonly module: M
  readonly #call: (...args: ModuleArgs) => unknown

  constructor(module: M, options: JointOptions) {
    super()
    this.module = module
    this.#call = tracedModule(module, options).call
  }

  override forward(...args: readonly unknown[]): unknown {
    return this.#call(...argsOf(this.module, args))
  }
}

const tracedModule = (module: Module, options: JointOptions): TracedFunction<ModuleArgs, unknown> =>
  new TracedFunction((state, _modes, args) => functionalCall(module, state, args), options)

const argsOf = (module: Module, args: readonly unknown[]): ModuleArgs => [
  stateOf(module),
  [...module.modules()].map(({ training }) => training),
  args,
]

function check(where: string, module: Module, options: JointOptions): void {
  checkArgument(isModule(module), where, 'module', 'a Module', module)
  checkOptions(where, options, { fwCompiler: true, bwCompiler: true, partition: true })
}

/**
 * {@link aotFunction} of a module: a module with the same parameters, buffers and mode, whose forward runs compiled graphs. Parameters and buffers are inputs, so that other ones are seen, gradients reach
 * them, and writes to buffers happen. PyTorch's functorch.compile.aot_module.
 *
 *     const model = aotModule(new nn.Linear(3, 2), { fwCompiler: (gm) => (...inputs) => gm.forward(...inputs) })
 *
 * @throws ArgumentError if `module` is no Module; UnsupportedError for parameters that are not Tensors.
 */
export function aotModule<M extends Module>(module: M, options: JointOptions): AotModule<M> {
  checkCount('aotModule', arguments, 2)
  check('aotModule', module, options)
  return new AotModule(module, options)
}

/**
 * Traces a module for `args`, which may be fake tensors, at once, and returns a function of the arguments. Calls with arguments of another kind are traced again. PyTorch's
 * aot_module_simplified, which ignores them.
 *
 * @throws ArgumentError if `module` is no Module; UnsupportedError for parameters that are not Tensors.
 */
export function aotModuleSimplified(module: Module, args: readonly unknown[], options: JointOptions): (...args: readonly unknown[]) => unknown {
  checkCount('aotModuleSimplified', arguments, 3)
  check('aotModuleSimplified', module, options)
  checkArgument(Array.isArray(args), 'aotModuleSimplified', 'args', 'an array of arguments', args)
  const traced = tracedModule(module, options)
  traced.prepare(argsOf(module, args))
  return (...given) => traced.call(...argsOf(module, given))
}
