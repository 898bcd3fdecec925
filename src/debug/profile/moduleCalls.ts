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
  readonly #paths = new WeakMap<Module, ReadonlyMap<Module, string>>()

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
    const outer = setModuleCallHook({
      callModule: (module, forward) => {
        const call = { module, path: this.#pathOf(module) }
        const depth = this.#stack.push(call)
        this.#listener.enter?.(call)
        let output: unknown
        try {
          const run = (): unknown => (outer === null ? forward() : outer.callModule(module, forward))
          output = this.#listener.run === undefined ? run() : this.#listener.run(call, run)
          return output
        } finally {
          this.#stack.length = depth - 1
          this.#listener.leave?.(call, output)
        }
      },
    })
    return () => void setModuleCallHook(outer)
  }

  /** A module that is not below the outermost one is called by its class, below the module that calls it. */
  #pathOf(module: Module): string {
    const root = this.#stack[0]
    if (root === undefined) return classOf(module)
    let paths = this.#paths.get(root.module)
    if (paths === undefined) this.#paths.set(root.module, (paths = new Map([...root.module.namedModules()].map(([path, below]) => [below, path]))))
    const path = paths.get(module)
    return path === undefined ? childPath(this.#stack.at(-1)?.path ?? '', classOf(module)) : path === '' ? root.path : childPath(root.path, path)
  }
}

/** The class of a module; of a GraphModule, that of the module that was traced. */
const classOf = (module: Module): string => (module instanceof GraphModule ? module.className : module.constructor.name)
