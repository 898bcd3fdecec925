// Which module is running: the calls of modules that are under way, by their paths.
import { GraphModule } from '../../fx/index.ts'
import { setModuleCallHook } from '../../module/index.ts'
import type { Module } from '../../module/index.ts'
import { childPath } from '../../protocol/index.ts'

/** A call of a module that is under way. */
export interface ModuleCall {
  readonly module: Module
  /** The class of the outermost module, and the path below it: `ResNet.layer1.0.conv1`. */
  readonly path: string
}

/** What is told of the calls. */
export interface ModuleCallListener {
  enter?(call: ModuleCall): void
  /** Runs `forward`, the call itself, and returns its result. Default: just that. */
  run?(call: ModuleCall, forward: () => unknown): unknown
  /** After a call that has returned `output`; undefined if it has thrown. */
  leave?(call: ModuleCall, output: unknown): void
}

/** The module calls that are under way. */
export class ModuleCalls {
  readonly #listener: ModuleCallListener
  readonly #stack: ModuleCall[] = []
  /** The calls of what is below an outermost module, each made once. */
  readonly #known = new WeakMap<Module, ReadonlyMap<Module, ModuleCall>>()
  /** The outermost module of the last call, and the calls below it. */
  #root: Module | null = null
  #below: ReadonlyMap<Module, ModuleCall> | undefined

  constructor(listener: ModuleCallListener = {}) {
    this.#listener = listener
  }

  /** The calls that are under way, outermost first. */
  get stack(): readonly ModuleCall[] {
    return this.#stack
  }

  /** Runs `fn`, and follows the module calls in it. */
  during<T>(fn: () => T): T {
    const stop = this.start()
    try {
      return fn()
    } finally {
      stop()
    }
  }

  /** Follows module calls until the returned function is called. */
  start(): () => void {
    const listener = this.#listener
    const outer = setModuleCallHook({
      callModule: (module, forward) => {
        const call = this.#callOf(module)
        const run = outer === null ? forward : (): unknown => outer.callModule(module, forward)
        const depth = this.#stack.push(call)
        listener.enter?.(call)
        let output: unknown
        try {
          output = listener.run === undefined ? run() : listener.run(call, run)
          return output
        } finally {
          this.#stack.length = depth - 1
          listener.leave?.(call, output)
        }
      },
    })
    return () => void setModuleCallHook(outer)
  }

  /** A module that is not below the outermost one is called by its class, below the module that calls it. */
  #callOf(module: Module): ModuleCall {
    const root = this.#stack[0]?.module ?? module
    if (root !== this.#root) {
      this.#root = root
      this.#below = this.#known.get(root)
      if (this.#below === undefined) this.#known.set(root, (this.#below = callsBelow(root)))
    }
    return this.#below?.get(module) ?? { module, path: childPath(this.#stack.at(-1)?.path ?? '', classOf(module)) }
  }
}

/** The calls of a module and of all below it. */
function callsBelow(root: Module): ReadonlyMap<Module, ModuleCall> {
  const name = classOf(root)
  return new Map([...root.namedModules()].map(([path, module]) => [module, { module, path: path === '' ? name : childPath(name, path) }]))
}

/** The class of a module; of a GraphModule, that of the module that was traced. */
const classOf = (module: Module): string => (module instanceof GraphModule ? module.className : module.constructor.name)
