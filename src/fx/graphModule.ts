// GraphModule: a Module whose forward is generated from a Graph. It holds what the graph refers to: parameters, buffers, submodules.
import { ArgumentError } from '../errors/index.ts'
import { Module, cloneModule } from '../module/index.ts'
import { isParameter, isTensorLike } from '../protocol/index.ts'
import type { TensorLike } from '../protocol/index.ts'
import { CapturedStack } from '../provenance/index.ts'
import type { GeneratedCode } from './codegen.ts'
import { Graph } from './graph.ts'
import type { Meta, Node } from './node.ts'
import { sourceMapComment } from './sourceMap.ts'

export type ReplaceHook = (old: Node, name: string, user: Node) => void
export type NodeHook = (node: Node) => void

/** An inner node of the attribute tree. */
class Container extends Module {
  override forward(): never {
    throw new ArgumentError('this module only holds attributes of a GraphModule; call the GraphModule.')
  }
}

let generated = 0

type Forward = (this: GraphModule, ...args: readonly unknown[]) => unknown

/** A module made of a graph; PyTorch's torch.fx.GraphModule. After editing `graph` in place call `recompile()`. */
export class GraphModule extends Module {
  readonly className: string
  meta: Meta = {}
  #graph: Graph
  #forward: Forward | null = null
  #generated: GeneratedCode | null = null
  #file = ''
  readonly #replaceHooks = new Set<ReplaceHook>()
  readonly #createHooks = new Set<NodeHook>()
  readonly #eraseHooks = new Set<NodeHook>()

  /**
   * `root` gives what the graph refers to: a Module (the attributes themselves are shared, only those that the graph uses) or a map from path
   * to value. Throws ArgumentError when a target is missing.
   */
  constructor(
    root: Module | Readonly<Record<string, unknown>>,
    graph: Graph,
    className: string = root instanceof GraphModule ? root.className : root instanceof Module ? root.constructor.name : 'GraphModule',
  ) {
    super()
    this.className = className
    if (root instanceof Module) this.training = root.training
    const paths = [...new Set([...graph.nodes].filter((n) => n.op === 'get_attr' || n.op === 'call_module').map((n) => n.target as string))]
    const read = (path: string): unknown => (root instanceof Module ? attributeOf(root, path) : root[path])
    paths.sort((a, b) => a.split('.').length - b.split('.').length)
    for (const path of paths) {
      const value = read(path)
      if (value === undefined) {
        const user = [...graph.nodes].find((n) => n.target === path)
        throw new ArgumentError(`Node ${user?.name ?? ''} referenced target ${path} but that target was not provided in \`root\`!`)
      }
      this.#assign(path, value, root instanceof Module ? root : null)
    }
    this.#graph = graph
    graph.owningModule = this
  }

  #assign(path: string, value: unknown, root: Module | null): void {
    const parts = path.split('.')
    let owner: Module = this
    for (const [i, part] of parts.slice(0, -1).entries()) {
      const holder = owner as unknown as Record<string, unknown>
      if (!(holder[part] instanceof Module)) holder[part] = new Container()
      const original = root === null ? undefined : attributeOf(root, parts.slice(0, i + 1).join('.'))
      // The very module of the root stands there already, with all its attributes.
      if (holder[part] === original) return
      owner = holder[part] as Module
    }
    const name = parts.at(-1) as string
    if (isTensorLike(value) && !isParameter(value)) owner.registerBuffer(name, value)
    else (owner as unknown as Record<string, unknown>)[name] = value
  }

  get graph(): Graph {
    return this.#graph
  }

  /** Takes another graph and recompiles. */
  set graph(graph: Graph) {
    if (!(graph instanceof Graph)) throw new ArgumentError('GraphModule.graph: expected a Graph.')
    this.#graph = graph
    graph.owningModule = this
    this.recompile()
  }

  /** The generated source. */
  get code(): string {
    return (this.#generated ?? this.#generate()).source
  }

  /** Line of `code` (from 1) -> node. */
  get lineMap(): ReadonlyMap<number, Node> {
    return (this.#generated ?? this.#generate()).lineMap
  }

  /** Generates the code again after the graph was edited. Compilation happens at the first call. */
  recompile(): GeneratedCode {
    this.#forward = null
    return this.#generate()
  }

  #generate(): GeneratedCode {
    this.#generated = this.#graph.generateCode()
    return this.#generated
  }

  #compile(): Forward {
    const { source, globals, lineMap } = this.#generated ?? this.#generate()
    this.#file = `tensorfx-generated/${this.className}_${generated++}.js`
    const prefix = `(function (${[...globals.keys()].join(', ')}) { return ${source}\n})`
    const map = sourceMapComment(source.split('\n').length, lineMap)
    // Indirect eval: generated code sees its own globals only, and its lines keep their numbers.
    // oxlint-disable-next-line no-eval -- this is what a code generator is for
    const make = (0, eval)(`${prefix}\n//# sourceURL=${this.#file}${map}`) as (...values: readonly unknown[]) => Forward
    this.#forward = make(...globals.values())
    return this.#forward
  }

  override forward(...args: readonly unknown[]): unknown {
    const run = this.#forward ?? this.#compile()
    try {
      return run.apply(this, [...args])
    } catch (error) {
      this.#explain(error)
      throw error
    }
  }

  /** Puts the node, the user's line and the module path in front of the message of an error from generated code. */
  #explain(error: unknown): void {
    if (!(error instanceof Error) || explained.has(error)) return
    const at = new RegExp(`${this.#file.replaceAll('.', '\\.')}:(\\d+):`).exec(error.stack ?? '')
    const node = at === null ? undefined : this.lineMap.get(Number(at[1]))
    if (node === undefined) return
    explained.add(error)
    const trace = node.stackTrace
    const frame = trace instanceof CapturedStack ? trace.userFrame : undefined
    const stack = node.meta['nn_module_stack']
    const path = stack instanceof Map && stack.size > 0 ? ` in module '${String([...stack.keys()].at(-1))}'` : ''
    const where = frame === undefined ? '' : `\n  from ${frame.file}:${frame.line} in ${frame.fn}`
    error.message = `While executing ${node.formatNode()}${path}${where}\n${error.message}`
  }

  /** The attribute at a dotted path; undefined when there is none. */
  attribute(path: string): unknown {
    return attributeOf(this, path)
  }

  isImpureModule(path: string): boolean {
    return (this.attribute(path) as { isImpure?: boolean } | undefined)?.isImpure === true
  }

  /** Adds a submodule, with its parents. Returns false when something on the way is no module. */
  addSubmodule(path: string, module: Module): boolean {
    const parts = path.split('.')
    let owner: unknown = this
    for (const part of parts.slice(0, -1)) {
      const holder = owner as Record<string, unknown>
      holder[part] ??= new Container()
      owner = holder[part]
      if (!(owner instanceof Module)) return false
    }
    ;(owner as Module).addModule(parts.at(-1) as string, module)
    return true
  }

  /** Removes a submodule. Returns false when there is none. */
  deleteSubmodule(path: string): boolean {
    const dot = path.lastIndexOf('.')
    const owner = dot < 0 ? this : this.attribute(path.slice(0, dot))
    const name = path.slice(dot + 1)
    if (!(owner instanceof Module) || !((owner as unknown as Record<string, unknown>)[name] instanceof Module)) return false
    delete (owner as unknown as Record<string, unknown>)[name]
    return true
  }

  /** Removes submodules that no node refers to. */
  deleteAllUnusedSubmodules(): void {
    const used: string[] = []
    const whole: string[] = []
    for (const node of this.#graph.nodes) {
      if (node.op !== 'get_attr' && node.op !== 'call_module') continue
      const parts = (node.target as string).split('.')
      for (let i = 1; i <= parts.length; i++) used.push(parts.slice(0, i).join('.'))
      if (node.op === 'call_module') whole.push(`${node.target as string}.`)
    }
    const keep = new Set(used)
    for (const [path] of [...this.namedModules()]) {
      if (path !== '' && !keep.has(path) && !whole.some((prefix) => path.startsWith(prefix))) this.deleteSubmodule(path)
    }
  }

  /** Called when a node takes another's place in a user, and when a node is renamed. Returns a function that unregisters. */
  registerReplaceNodeHook(hook: ReplaceHook): () => void {
    this.#replaceHooks.add(hook)
    return () => void this.#replaceHooks.delete(hook)
  }

  registerCreateNodeHook(hook: NodeHook): () => void {
    this.#createHooks.add(hook)
    return () => void this.#createHooks.delete(hook)
  }

  registerEraseNodeHook(hook: NodeHook): () => void {
    this.#eraseHooks.add(hook)
    return () => void this.#eraseHooks.delete(hook)
  }

  fireReplaceHooks(old: Node, name: string, user: Node): void {
    for (const hook of this.#replaceHooks) hook(old, name, user)
  }

  fireCreateHooks(node: Node): void {
    for (const hook of this.#createHooks) hook(node)
  }

  fireEraseHooks(node: Node): void {
    for (const hook of this.#eraseHooks) hook(node)
  }

  /** The code with the user's lines and shapes as comments, and that of child GraphModules. Prints it unless `print` is false. */
  printReadable(options: { readonly print?: boolean } = {}): string {
    const { source } = this.#graph.generateCode({ verbose: true })
    const body = source
      .replace(/^function /, '')
      .split('\n')
      .map((l) => `  ${l}`)
    const children = [...this.namedChildren()].flatMap(([name, child]) =>
      child instanceof GraphModule
        ? [
            '',
            `  // child '${name}':`,
            ...child
              .printReadable({ print: false })
              .split('\n')
              .map((l) => `  ${l}`),
          ]
        : [],
    )
    const text = [`class ${this.className} extends nn.Module {`, ...body, ...children, '}'].join('\n')
    if (options.print !== false) console.log(text)
    return text
  }

  /** A copy with a graph of its own; tensors are shared. */
  deepCopy(): GraphModule {
    return cloneModule(this, (t: TensorLike) => t)
  }

  /** For cloneModule. */
  cloneWith(copy: (value: unknown) => unknown): GraphModule {
    const made = new GraphModule({}, new Graph(), this.className)
    for (const [key, value] of Object.entries(this))
      if (key !== 'meta' && key !== 'className') (made as unknown as Record<string, unknown>)[key] = copy(value)
    for (const [name, , persistent] of this.ownBuffers())
      made.registerBuffer(name, (made as unknown as Record<string, TensorLike>)[name] ?? null, { persistent })
    made.meta = { ...this.meta }
    made.#graph = this.#graph.deepCopy()
    made.#graph.owningModule = made
    for (const hook of this.#replaceHooks) made.#replaceHooks.add(hook)
    for (const hook of this.#createHooks) made.#createHooks.add(hook)
    for (const hook of this.#eraseHooks) made.#eraseHooks.add(hook)
    return made
  }

  override getName(): string {
    return this.className
  }

  override toString(): string {
    return `${super.toString()}\n\n${this.code}\n\n// To see more debug info, please use \`graphModule.printReadable()\``
  }
}

/** Errors whose message already says where they came from. */
const explained = new WeakSet<Error>()

function attributeOf(root: Module, path: string): unknown {
  let value: unknown = root
  for (const part of path.split('.')) {
    if (typeof value !== 'object' || value === null) return undefined
    value = (value as Record<string, unknown>)[part]
  }
  return value
}
