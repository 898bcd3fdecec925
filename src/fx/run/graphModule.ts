// GraphModule: a Module whose forward is generated from a Graph. It holds the parameters, buffers and submodules that the graph refers to.
import { ArgumentError, recordedStack } from '../../errors/index.ts'
import { attributeAt, getAttribute, Module, ownAttribute, setAttribute, splitPath, noteNewCode } from '../../module/index.ts'
import {
  canGenerateCode,
  checkArgument,
  checkCallable,
  checkCount,
  checkMethod,
  checkModule,
  checkString,
  isFunction,
  isObject,
  isPlainObject,
  kindOf,
  lineComment,
} from '../../protocol/index.ts'
import { deepenStacks, restoreStacks } from '../../provenance/index.ts'
import { compileCode } from '../text/compileCode.ts'
import type { Forward } from '../text/compileCode.ts'
import { capturedConstants } from './constants.ts'
import { GraphError } from '../graph/errors.ts'
import { referringNodes } from '../graph/lint.ts'
import type { CapturedConstant } from './constants.ts'
import { Container, checkFreeOf, placeAttribute } from './attributes.ts'
import { claimError, explainError, failedLine, markLine } from '../text/explain.ts'
import type { GeneratedCode, WriteOptions } from '../graph/graphText.ts'
import { Graph } from '../graph/graph.ts'
import type { Scope } from '../graph/graph.ts'
import { runGraph } from './evaluate.ts'
import type { Meta, Node } from '../graph/node.ts'

/** Called before `user` starts to use the node named `name` instead of `old`. */
export type ReplaceHook = (old: Node, name: string, user: Node) => void
/** Called with a node that was created or is about to be erased. */
export type NodeHook = (node: Node) => void

/** Unregisters a hook when it is called or disposed: `using _ = gm.registerReplaceNodeHook(hook)`. */
export type HookHandle = (() => void) & Scope

/** Graphs with more nodes are interpreted: every value of a compiled function has a slot on the stack, which a hundred thousand nodes would overflow. */
const MAX_COMPILED = 20_000

/** Whether a graph runs node by node instead of as generated code. */
const isInterpreted = (graph: Graph): boolean => graph.size > MAX_COMPILED || !canGenerateCode()

/** The methods that the bound `forward` of graph modules call. */
const methods = new WeakMap<object, unknown>()

/** The method that the `forward` of a GraphModule is bound from; any other value as it is. */
export const unbound = (fn: unknown): unknown => (isFunction(fn) ? (methods.get(fn) ?? fn) : fn)

/** A module that runs a graph; PyTorch's torch.fx.GraphModule. After editing `graph` in place, call `recompile()`; until then the old code runs, with a warning. */
export class GraphModule extends Module {
  /** The class name in printouts: that of the traced class or function. */
  readonly className: string
  /** What passes know about the module. Copies keep it. */
  meta: Meta = {}
  #graph: Graph
  #forward: Forward | null = null
  #generated: GeneratedCode | null = null
  #file = ''
  /** The graph as it was when the code was generated, if it has been edited and cannot be compiled. */
  #kept: Graph | null = null
  /** How many edits of the graph the code contains. */
  #edits = 0
  #warned = false
  #hooks = { replace: new Set<ReplaceHook>(), create: new Set<NodeHook>(), erase: new Set<NodeHook>() }

  /**
   * `root` provides the attributes that the graph refers to: a Module, with which they are shared, or an object from path to value. Throws ArgumentError if one
   * is missing.
   */
  constructor(root: Module | Readonly<Record<string, unknown>>, graph: Graph, className: string = 'GraphModule') {
    checkCount('GraphModule', arguments, 3)
    super()
    checkRoot(root)
    checkArgument(graph instanceof Graph, 'GraphModule', 'graph', 'a Graph', graph)
    this.className = className
    if (root instanceof Module) this.training = root.training
    const users = new Map<string, Node>()
    for (const node of referringNodes(graph)) if (!users.has(node.target)) users.set(node.target, node)
    const paths = [...users.keys()]
    // The attributes of a module are added in order of use; those of an object so that owners come before what they own.
    if (!(root instanceof Module)) paths.sort((a, b) => a.split('.').length - b.split('.').length)
    for (const path of paths) {
      const value = root instanceof Module ? attributeAt(root, path) : ownAttribute(root, path)
      if (value === undefined)
        throw new ArgumentError(`Node ${String(users.get(path))} referenced target ${path} but that target was not provided in \`root\`!`)
      checkFree('GraphModule', path)
      placeAttribute(this, path, value, root instanceof Module ? root : null)
    }
    graph.owningModule?.beforeEdit()
    this.#graph = graph
    graph.owningModule = this
    this.#edits = graph.edits
    // `gm.forward` is a function of the graph by itself, as Python's bound methods are: a backend may return it.
    const { forward } = this
    const bound = forward.bind(this)
    methods.set(bound, forward)
    Object.defineProperty(this, 'forward', { value: bound, configurable: true, writable: true })
  }

  /** The graph. After editing it in place, call `recompile()`. Assigning another graph recompiles. */
  get graph(): Graph {
    return this.#graph
  }

  set graph(graph: Graph) {
    checkArgument(graph instanceof Graph, 'GraphModule', 'graph', 'a Graph', graph)
    const [before, owner] = [this.#graph, graph.owningModule]
    owner?.beforeEdit()
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

  /** From line of `code` (from 1) to node. */
  get lineMap(): ReadonlyMap<number, Node> {
    return this.generatedCode.lineMap
  }

  /** The code as last generated. It is generated now if there is none. */
  protected get generatedCode(): GeneratedCode {
    if (this.#generated === null) {
      this.#generated = (this.#kept ?? this.#graph).generateCode()
      if (this.#kept === null) this.#edits = this.#graph.edits
    }
    return this.#generated
  }

  /**
   * Called by the graph before it is edited. The code of the graph as it is runs until `recompile()`, so it must be generated now.
   * @internal
   */
  beforeEdit(): void {
    // With one edit, the code is of an older graph already.
    if (this.#graph.edits !== this.#edits) return
    if (isInterpreted(this.#graph)) this.#kept = ifPossible(() => this.#graph.deepCopy())
    else this.#generated ??= ifPossible(() => this.#graph.generateCode())
  }

  /** Whether there is generated code. */
  protected get isGenerated(): boolean {
    return this.#generated !== null
  }

  /** Discards the generated code; it is generated again when needed. */
  protected forgetCode(): void {
    this.#forward = null
    this.#generated = null
    this.#kept = null
    this.#edits = this.#graph.edits
    noteNewCode(this)
  }

  /**
   * Generates the code again, after the graph was edited. It is compiled at the first call. Throws GraphError if no code can be generated for the graph, and then
   * keeps the old code.
   */
  recompile(): GeneratedCode {
    checkMethod(this, 'GraphModule.recompile', arguments, 0)
    const code = this.#graph.generateCode()
    this.forgetCode()
    return (this.#generated = code)
  }

  #compile(): Forward {
    const code = this.generatedCode
    const graph = this.#kept ?? this.#graph
    if (isInterpreted(graph)) {
      if (graph.codegen.bodyTransformer !== null && !canGenerateCode())
        throw new GraphError(
          `GraphModule '${this.className}': onGenerateCode changed its code, and generated code is not allowed here. Remove the transformer, or allow 'unsafe-eval'.`,
        )
      return (this.#forward = (...args) => runGraph({ graph: this.#kept ?? this.#graph, attribute: (path) => this.attribute(path) }, args))
    }
    ;({ forward: this.#forward, file: this.#file } = compileCode(code, this.className, this.#graph.sourceHint))
    return this.#forward
  }

  // eslint-disable-next-line typescript/no-explicit-any -- the graph, not the type, determines the arguments and the result
  override forward(...args: any[]): any {
    const run = this.#forward ?? this.#compile()
    if (this.#edits !== this.#graph.edits) this.#warnOfEdits()
    const before = deepenStacks()
    try {
      return run.apply(this, args)
    } catch (error) {
      this.#explain(error)
      throw error
    } finally {
      restoreStacks(before)
    }
  }

  #warnOfEdits(): void {
    if (this.#warned) return
    this.#warned = true
    console.warn(
      `GraphModule '${this.className}': its graph was edited, but the code from before the edit is still running; call recompile() on the module after editing its graph.`,
    )
  }

  /**
   * Adds to the message of an error which node was running. If the generated code itself or an operator that it called threw, the generated lines are added too;
   * for errors from the user's own functions and modules they would be noise.
   */
  #explain(error: unknown): void {
    const code = this.#generated
    if (!(error instanceof Error) || this.#file === '' || code === null) return
    const place = failedLine(recordedStack(error), this.#file, code)
    const node = place === null ? null : code.nodeAt(place.line)
    if (place === null || node === null || !claimError(error)) return
    const thrownHere = node.op !== 'call_module' && place.isInnermost
    explainError(error, node, thrownHere ? markLine(code.source, place.line) : [])
  }

  /** The attribute at a dotted path; undefined if there is none. */
  attribute(path: string): unknown {
    return attributeAt(this, path)
  }

  /** Whether calling the module at `path` has side effects: it declares them (`isImpure = true`, PyTorch's `_is_impure`) or works in place. @internal */
  isImpureModule(path: string): boolean {
    const module = this.attribute(path)
    return getAttribute(module, 'isImpure') === true || getAttribute(module, 'inplace') === true
  }

  /** Whether the GraphModule at `path`, a body of control flow, has nodes with side effects. @internal */
  isImpureBody(path: string): boolean {
    const module = this.attribute(path)
    if (!(module instanceof GraphModule)) return false
    return [...module.graph.nodes].some((n) => n.op !== 'placeholder' && n.op !== 'output' && n.isImpure())
  }

  /** The values that the traced program used without getting them as arguments, and the graph now holds; the largest first. */
  capturedConstants(): CapturedConstant[] {
    checkMethod(this, 'GraphModule.capturedConstants', arguments, 0)
    return capturedConstants(this.#graph)
  }

  /** Sets the attribute at a dotted path, and makes the modules on the way. A tensor that is not a parameter becomes a buffer. */
  assignAttribute(path: string, value: unknown): void {
    checkString('GraphModule.assignAttribute', 'path', path)
    checkFree('GraphModule', path)
    placeAttribute(this, path, value, null)
  }

  /**
   * Adds a submodule at a dotted path, and makes the modules on the way. Returns false if something on the way is not a module. Throws ArgumentError for anything
   * but a module, and for an empty name.
   */
  addSubmodule(path: string, module: Module): boolean {
    checkMethod(this, 'GraphModule.addSubmodule', arguments, 2)
    checkString('GraphModule.addSubmodule', 'path', path)
    checkModule('addSubmodule', path, module)
    const parts = path.split('.')
    if (parts.includes('')) throw new ArgumentError(`addSubmodule: the path '${path}' has an empty name.`)
    checkFree('addSubmodule', path)
    let owner: Module = this
    for (const part of parts.slice(0, -1)) {
      const child = ownAttribute(owner, part) ?? new Container()
      if (!(child instanceof Module)) return false
      if (ownAttribute(owner, part) !== child) setAttribute(owner, part, child)
      owner = child
    }
    owner.addModule(splitPath(path)[1], module)
    return true
  }

  /** Removes the submodule at a dotted path. Returns false if there is none. */
  deleteSubmodule(path: string): boolean {
    checkMethod(this, 'GraphModule.deleteSubmodule', arguments, 1)
    const [ownerPath, name] = splitPath(path)
    const owner = ownerPath === '' ? this : this.attribute(ownerPath)
    return owner instanceof Module && ownAttribute(owner, name) instanceof Module && Reflect.deleteProperty(owner, name)
  }

  /** Removes submodules that no node refers to. */
  deleteAllUnusedSubmodules(): void {
    checkMethod(this, 'GraphModule.deleteAllUnusedSubmodules', arguments, 0)
    const used: string[] = []
    const whole: string[] = []
    for (const node of referringNodes(this.#graph)) {
      const parts = node.target.split('.')
      for (let i = 1; i <= parts.length; i++) used.push(parts.slice(0, i).join('.'))
      if (node.op === 'call_module') whole.push(`${node.target}.`)
    }
    const keep = new Set(used)
    for (const [path] of [...this.namedModules()]) {
      if (path !== '' && !keep.has(path) && !whole.some((prefix) => path.startsWith(prefix))) this.deleteSubmodule(path)
    }
  }

  /** Registers a hook that is called when a node replaces another in a user, and when a node is renamed. */
  registerReplaceNodeHook(hook: ReplaceHook): HookHandle {
    checkMethod(this, 'GraphModule.registerReplaceNodeHook', arguments, 1)
    return register('registerReplaceNodeHook', this.#hooks.replace, hook)
  }

  /** Registers a hook that is called after a node was added to the graph. */
  registerCreateNodeHook(hook: NodeHook): HookHandle {
    checkMethod(this, 'GraphModule.registerCreateNodeHook', arguments, 1)
    return register('registerCreateNodeHook', this.#hooks.create, hook)
  }

  /** Registers a hook that is called before a node is erased. */
  registerEraseNodeHook(hook: NodeHook): HookHandle {
    checkMethod(this, 'GraphModule.registerEraseNodeHook', arguments, 1)
    return register('registerEraseNodeHook', this.#hooks.erase, hook)
  }

  /** Called by the graph. @internal */
  fireReplaceHooks(old: Node, name: string, user: Node): void {
    for (const hook of this.#hooks.replace) hook(old, name, user)
  }

  /** Called by the graph. @internal */
  fireCreateHooks(node: Node): void {
    for (const hook of this.#hooks.create) hook(node)
  }

  /** Called by the graph. @internal */
  fireEraseHooks(node: Node): void {
    for (const hook of this.#hooks.erase) hook(node)
  }

  /**
   * Returns the code with the user's lines and the shapes as comments, followed by the code of child GraphModules, and prints it unless `print` is false. Strides,
   * devices, module paths, types and colours are optional. PyTorch's print_readable.
   */
  printReadable(options: Omit<WriteOptions, 'verbose'> & { readonly print?: boolean } = {}): string {
    checkMethod(this, 'printReadable', arguments, 1)
    checkArgument(isObject(options), 'printReadable', 'options', 'an object', options)
    const { print = true, ...style } = options
    const { source } = this.#graph.generateCode({ ...style, verbose: true })
    const lines = source.replace(/^function /m, '').split('\n')
    for (const [path, child] of graphModulesIn(this, ''))
      lines.push('', `// child '${lineComment(path)}':`, ...child.printReadable({ ...style, print: false }).split('\n'))
    const text = [`class ${this.className.replace(/[^\w$]/g, '_')} extends nn.Module {`, ...lines.map((l) => (l === '' ? l : `  ${l}`)), '}'].join(
      '\n',
    )
    if (print) console.log(text)
    return text
  }

  /** A new module with the same graph, tensors and submodules. The new module becomes the owner of the graph. PyTorch's copy.copy. */
  shallowCopy(): this {
    const copy = this.makeLike(this.#graph)
    copy.meta = this.meta
    return copy as this
  }

  /** A module of the same class with this module's attributes and another graph. A subclass with its own constructor overrides it, and `makeEmpty`. */
  protected makeLike(graph: Graph): GraphModule {
    return new GraphModule(this, graph, this.className)
  }

  /** An empty module of the same class, which `cloneWith` fills. */
  protected makeEmpty(): GraphModule {
    return new GraphModule({}, new Graph(), this.className)
  }

  /** Called by cloneModule. @internal */
  cloneWith(copy: (value: unknown) => unknown): GraphModule {
    const made = this.makeEmpty()
    for (const [key, value] of Object.entries(this)) if (key !== 'meta' && key !== 'className') setAttribute(made, key, copy(value))
    made.meta = { ...this.meta }
    made.#graph = this.#graph.deepCopy()
    made.#graph.owningModule = made
    const { replace, create, erase } = this.#hooks
    made.#hooks = { replace: new Set(replace), create: new Set(create), erase: new Set(erase) }
    return made
  }

  override getName(): string {
    return this.className
  }

  override toString(): string {
    return `${super.toString()}\n\n${this.code}\n\n// To see more debug info, please use \`graphModule.printReadable()\``
  }
}

/** The code or a copy of a graph; null if there can be none, because the graph is still being built. */
function ifPossible<T>(make: () => T): T | null {
  try {
    return make()
  } catch {
    return null
  }
}

/** The GraphModules below a module that are not inside another one, with their paths. */
function* graphModulesIn(owner: Module, prefix: string): Generator<[string, GraphModule]> {
  for (const [name, child] of owner.namedChildren()) {
    if (child instanceof GraphModule) yield [prefix + name, child]
    else if (child instanceof Container) yield* graphModulesIn(child, `${prefix}${name}.`)
  }
}

/** Throws ArgumentError if a path contains a name that modules use themselves. */
export const checkFree = (where: string, path: string): void => checkFreeOf(GraphModule, where, path)

function register<H>(where: string, hooks: Set<H>, hook: H): HookHandle {
  checkCallable(where, 'hook', hook)
  hooks.add(hook)
  const remove = (): void => void hooks.delete(hook)
  return Object.assign(remove, { [Symbol.dispose]: remove })
}

function checkRoot(root: unknown): void {
  if (root instanceof Module || isPlainObject(root)) return
  throw new ArgumentError(`Unsupported type ${kindOf(root)} passed for root! Pass a Module, or an object from path to value.`)
}
