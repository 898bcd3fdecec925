// Which layer or function of the program the nodes of makeFx come from: `meta.source_fn_stack` and `meta.nn_module_stack`.
import type { Node } from '../../fx/index.ts'
import { Module, isLibraryLayer, setModuleTracingHook } from '../../module/index.ts'

/** The innermost layer or function that a node comes from is the last: a name that is unique for each call, and the class or function. PyTorch's source_fn_stack. */
export type SourceFnStack = readonly (readonly [name: string, source: unknown])[]

/** Notes where nodes come from while a program runs. */
export class SourceRecorder {
  readonly #paths: ReadonlyMap<Module, string>
  /** The modules that were called. */
  readonly called = new Set<Module>()
  readonly #calls = new Map<string, number>()
  #sources: SourceFnStack = []
  #modules: ReadonlyMap<string, readonly [string, string]> = new Map()

  /** `root` is the traced module; other modules have no paths. */
  constructor(root: unknown) {
    this.#paths = new Map(root instanceof Module ? Array.from(root.namedModules(), ([path, module]) => [module, path]) : [])
  }

  /** Runs a program and sees the calls of its modules. */
  within<T>(run: () => T): T {
    const outer = setModuleTracingHook({ callModule: (module, forward, args) => this.#call(module, () => forward(...args)) })
    try {
      return run()
    } finally {
      setModuleTracingHook(outer)
    }
  }

  /** Notes where the node of an operator, or of a tensor that a layer reads, comes from. */
  note(node: Node): void {
    if (node.op === 'get_attr' && this.#sources.length === 0) return
    node.meta['source_fn_stack'] = this.#sources.length > 0 ? this.#sources : [[node.name, node.target]]
    if (this.#modules.size > 0) node.meta['nn_module_stack'] = this.#modules
  }

  #call(module: Module, forward: () => unknown): unknown {
    this.called.add(module)
    const before = [this.#sources, this.#modules] as const
    const type = module.getName()
    const path = this.#paths.get(module) ?? type
    const calls = this.#calls.get(path) ?? 0
    this.#calls.set(path, calls + 1)
    const key = calls === 0 ? path : `${path}@${calls}`
    if (path !== '') this.#modules = new Map(this.#modules).set(key, [path, type])
    if (isLibraryLayer(module)) this.#sources = [...this.#sources, [key === '' ? type : key, module.constructor]]
    try {
      return forward()
    } finally {
      ;[this.#sources, this.#modules] = before
    }
  }
}
