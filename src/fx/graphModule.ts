// GraphModule: a Module whose forward is generated from a Graph. It holds what the graph refers to: parameters, buffers, submodules.
import { ArgumentError } from '../errors/index.ts'
import { Module, cloneModule } from '../module/index.ts'
import { isParameter, isTensorLike } from '../protocol/index.ts'
import { deepenStacks, restoreStacks } from '../provenance/index.ts'
import type { WriteOptions } from './codeWriter.ts'
import { compileCode } from './compileCode.ts'
import type { Forward } from './compileCode.ts'
import { capturedConstants } from './constants.ts'
import type { CapturedConstant } from './constants.ts'
import { Container } from './container.ts'
import { copyTensor } from './copyTensor.ts'
import { claimError, explainError, failedLine, markLine } from './explain.ts'
import type { GeneratedCode } from './generatedCode.ts'
import { Graph } from './graph.ts'
import type { Scope } from './graph.ts'
import { Interpreter } from './interpreter.ts'
import type { Meta, Node } from './node.ts'

/** Hears that `user` gets the node named `name` in place of `old`. */
export type ReplaceHook = (old: Node, name: string, user: Node) => void
/** Hears of a node that was made, or is about to be erased. */
export type NodeHook = (node: Node) => void

/** Unregisters a hook when it is called, or disposed: `using _ = gm.registerReplaceNodeHook(hook)`. */
export type HookHandle = (() => void) & Scope

/**
 * Beyond this many nodes a graph is interpreted: each value of a compiled function has a slot on the stack, and a graph of a hundred thousand nodes
 * would overflow it.
 */
const MAX_COMPILED = 20_000

/** A module made of a graph; PyTorch's torch.fx.GraphModule. After editing `graph` in place call `recompile()`. */
export class GraphModule extends Module {
  /** The name that it prints under: that of the traced class or function. */
  /** The class that it stands for, in printouts. */
  readonly className: string
  /** Free notes; copies keep them. */
  /** Free notes on the module. */
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
    checkRoot(root)
    if (!(graph instanceof Graph)) throw new ArgumentError('GraphModule: the second argument must be a Graph.')
    this.className = className
    if (root instanceof Module) this.training = root.training
    const paths = [...new Set([...graph.nodes].filter((n) => n.op === 'get_attr' || n.op === 'call_module').map((n) => n.target as string))]
    const read = (path: string): unknown => (root instanceof Module ? attributeOf(root, path) : root[path])
    // From a map, owners come before what they own; from a module, everything in the order in which it is used.
    if (!(root instanceof Module)) paths.sort((a, b) => a.split('.').length - b.split('.').length)
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
    checkFree('GraphModule', path)
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

  /** The graph. After an edit in place call `recompile()`; setting another one recompiles. */
  /** The graph. After editing it in place call `recompile()`; assigning another one recompiles. */
  get graph(): Graph {
    return this.#graph
  }

  /** Takes another graph and recompiles. */
  set graph(graph: Graph) {
    if (!(graph instanceof Graph)) throw new ArgumentError('GraphModule.graph: expected a Graph.')
    const [before, owner] = [this.#graph, graph.owningModule]
    this.#graph = graph
    graph.owningModule = this
    try {
      this.recompile()
    } catch (error) {
      this.#graph = before
      graph.owningModule = owner
      throw error
    }
  }

  /** The generated source. */
  get code(): string {
    return this.generatedCode.source
  }

  /** Line of `code` (from 1) -> node. */
  get lineMap(): ReadonlyMap<number, Node> {
    return this.generatedCode.lineMap
  }

  /** What was generated last; it is generated now when there is nothing. */
  protected get generatedCode(): GeneratedCode {
    return (this.#generated ??= this.#graph.generateCode())
  }

  /** Whether there is code, and nobody has asked for new one since. */
  protected get isGenerated(): boolean {
    return this.#generated !== null
  }

  /** Forgets the generated code: it is generated again when somebody needs it. */
  protected forgetCode(): void {
    this.#forward = null
    this.#generated = null
  }

  /** Generates the code again after the graph was edited. Compilation happens at the first call. Throws GraphError for a graph that no code can say; then the old code stays. */
  recompile(): GeneratedCode {
    const code = this.#graph.generateCode()
    this.#forward = null
    return (this.#generated = code)
  }

  #compile(): Forward {
    const code = this.generatedCode
    if (this.#graph.size > MAX_COMPILED) {
      const interpreter = new Interpreter(this)
      return (this.#forward = (...args) => interpreter.run(...args))
    }
    ;({ forward: this.#forward, file: this.#file } = compileCode(code, this.className, this.#graph.sourceHint))
    return this.#forward
  }

  // eslint-disable-next-line typescript/no-explicit-any -- the graph says what it takes and returns, not the type
  override forward(...args: any[]): any {
    const run = this.#forward ?? this.#compile()
    const before = deepenStacks()
    try {
      return run.apply(this, args as unknown[])
    } catch (error) {
      this.#explain(error)
      throw error
    } finally {
      restoreStacks(before)
    }
  }

  /**
   * Says in the message of an error which node was running; where the generated code itself or an operator that it called threw, also with the generated lines. What
   * the user's own functions and modules throw speaks for itself.
   */
  #explain(error: unknown): void {
    const code = this.#generated
    if (!(error instanceof Error) || this.#file === '' || code === null) return
    const place = failedLine(error.stack ?? '', this.#file, code)
    const node = place === null ? null : code.nodeAt(place.line)
    if (place === null || node === null || !claimError(error)) return
    const thrownHere = node.op !== 'call_module' && place.isInnermost
    explainError(error, node, thrownHere ? markLine(code.source, place.line) : [])
  }

  /** The attribute at a dotted path; undefined when there is none. */
  attribute(path: string): unknown {
    return attributeOf(this, path)
  }

  /** Whether calling the module at `path` has effects: it says so (`isImpure = true`, PyTorch's `_is_impure`), or works in place. */
  isImpureModule(path: string): boolean {
    const module = this.attribute(path) as { readonly isImpure?: unknown; readonly inplace?: unknown } | undefined
    return module?.isImpure === true || module?.inplace === true
  }

  /** Whether the GraphModule at `path` has operations with effects: a body of control flow does what they do. */
  isImpureBody(path: string): boolean {
    const module = this.attribute(path)
    if (!(module instanceof GraphModule)) return false
    return [...module.graph.nodes].some((n) => n.op !== 'placeholder' && n.op !== 'output' && n.isImpure())
  }

  /** What the traced program used from outside and the graph now holds, with sizes; largest first. */
  capturedConstants(): CapturedConstant[] {
    return capturedConstants(this.#graph)
  }

  /** Puts a value at a dotted path; modules that are missing on the way are made. A tensor that is no parameter becomes a buffer. */
  assignAttribute(path: string, value: unknown): void {
    this.#assign(path, value, null)
  }

  /** Adds a submodule, with its parents. Returns false when something on the way is no module. Throws ArgumentError for what is no module, and an empty name. */
  addSubmodule(path: string, module: Module): boolean {
    if (!(module instanceof Module)) throw new ArgumentError(`addSubmodule: '${path}' must be a Module.`)
    const parts = path.split('.')
    if (parts.includes('')) throw new ArgumentError(`addSubmodule: the path '${path}' has an empty name.`)
    checkFree('addSubmodule', path)
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

  /** Called when a node takes another's place in a user, and when a node is renamed. Returns what unregisters it. */
  registerReplaceNodeHook(hook: ReplaceHook): HookHandle {
    checkHook('registerReplaceNodeHook', hook)
    return register(this.#replaceHooks, hook)
  }

  /** Called after a node was added to the graph. Returns what unregisters it. */
  registerCreateNodeHook(hook: NodeHook): HookHandle {
    checkHook('registerCreateNodeHook', hook)
    return register(this.#createHooks, hook)
  }

  /** Called before a node is erased. Returns what unregisters it. */
  registerEraseNodeHook(hook: NodeHook): HookHandle {
    checkHook('registerEraseNodeHook', hook)
    return register(this.#eraseHooks, hook)
  }

  /** For the graph: tells the hooks. */
  fireReplaceHooks(old: Node, name: string, user: Node): void {
    for (const hook of this.#replaceHooks) hook(old, name, user)
  }

  /** For the graph: tells the hooks. */
  fireCreateHooks(node: Node): void {
    for (const hook of this.#createHooks) hook(node)
  }

  /** For the graph: tells the hooks. */
  fireEraseHooks(node: Node): void {
    for (const hook of this.#eraseHooks) hook(node)
  }

  /**
   * The code with the user's lines and shapes as comments, and that of child GraphModules; strides, devices, module paths, types and colours when asked for. Prints it
   * unless `print` is false. PyTorch's print_readable.
   */
  printReadable(options: Omit<WriteOptions, 'verbose'> & { readonly print?: boolean } = {}): string {
    const { source } = this.#graph.generateCode({ ...options, verbose: true })
    const lines = source.replace(/^function /m, '').split('\n')
    for (const [path, child] of graphModulesIn(this, ''))
      lines.push('', `// child '${path}':`, ...child.printReadable({ ...options, print: false }).split('\n'))
    const text = [`class ${this.className} extends nn.Module {`, ...lines.map((l) => (l === '' ? l : `  ${l}`)), '}'].join('\n')
    if (options.print !== false) console.log(text)
    return text
  }

  /**
   * A copy with a graph, submodules, parameters and buffers of its own; with `shareTensors` the tensors are the same ones. Attributes, hooks and meta are kept.
   * PyTorch's copy.deepcopy.
   */
  deepCopy(options: { readonly shareTensors?: boolean } = {}): this {
    return cloneModule(this, options.shareTensors === true ? (tensor) => tensor : copyTensor)
  }

  /** Another module over the same graph, tensors and submodules: the graph now belongs to it. PyTorch's copy.copy. */
  shallowCopy(): this {
    const copy = this.makeLike(this.#graph)
    copy.meta = this.meta
    return copy as this
  }

  /** A module of the same kind with this module's attributes over another graph. A subclass with a constructor of its own overrides it, and `makeEmpty`. */
  protected makeLike(graph: Graph): GraphModule {
    return new GraphModule(this, graph, this.className)
  }

  /** An empty module of the same kind, which {@link cloneWith} fills. */
  protected makeEmpty(): GraphModule {
    return new GraphModule({}, new Graph(), this.className)
  }

  /** For cloneModule. */
  cloneWith(copy: (value: unknown) => unknown): GraphModule {
    const made = this.makeEmpty()
    for (const [key, value] of Object.entries(this))
      if (key !== 'meta' && key !== 'className') (made as unknown as Record<string, unknown>)[key] = copy(value)
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

/** The nearest GraphModules below a module, with their paths. */
function* graphModulesIn(owner: Module, prefix: string): Generator<[string, GraphModule]> {
  for (const [name, child] of owner.namedChildren()) {
    if (child instanceof GraphModule) yield [prefix + name, child]
    else if (child instanceof Container) yield* graphModulesIn(child, `${prefix}${name}.`)
  }
}

/** What modules need for themselves cannot be an attribute of a graph. */
function checkFree(where: string, path: string): void {
  const [first = '', ...rest] = path.split('.')
  const taken = OWN_FIELDS.has(first) || first in GraphModule.prototype ? first : rest.find((part) => part in Container.prototype)
  if (taken !== undefined)
    throw new ArgumentError(
      `${where}: the attribute '${path}' cannot be called '${taken}', which is a name of a ${taken === first ? 'GraphModule' : 'Module'}'s own; rename it.`,
    )
}

const OWN_FIELDS: ReadonlySet<string> = new Set(['className', 'meta', 'training'])

function register<H>(hooks: Set<H>, hook: H): HookHandle {
  hooks.add(hook)
  const remove = (): void => void hooks.delete(hook)
  return Object.assign(remove, { [Symbol.dispose]: remove })
}

function checkHook(where: string, hook: unknown): void {
  if (typeof hook !== 'function') throw new ArgumentError(`${where}: hook must be a function, got ${hook === null ? 'null' : typeof hook}.`)
}

function checkRoot(root: unknown): void {
  if (root instanceof Module) return
  const prototype: unknown = typeof root === 'object' && root !== null ? Object.getPrototypeOf(root) : undefined
  if (prototype === Object.prototype || prototype === null) return
  throw new ArgumentError(
    `Unsupported type ${root === null ? 'null' : typeof root === 'object' ? (root as object).constructor.name : typeof root} passed for root! Pass a Module, or an object from path to value.`,
  )
}

function attributeOf(root: Module, path: string): unknown {
  let value: unknown = root
  for (const part of path.split('.')) {
    if (typeof value !== 'object' || value === null) return undefined
    value = (value as Record<string, unknown>)[part]
  }
  return value
}
