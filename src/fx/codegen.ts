// From a graph to JavaScript that a person would have written. The compiled function gets the functions it calls as constants; no lookups remain.
import { isParameter, isTensorLike, targetInfo } from '../protocol/index.ts'
import type { TargetFunction } from '../protocol/index.ts'
import { CapturedStack } from '../provenance/index.ts'
import { GraphError } from './errors.ts'
import type { BodyTransformer, Graph } from './graph.ts'
import { getattr } from './operator.ts'
import { Namespace, isIdentifier } from './namespace.ts'
import { Node } from './node.ts'
import type { Argument } from './node.ts'
import { Slice } from './slice.ts'
import { annotation } from './annotation.ts'

export interface GeneratedCode {
  /** `function forward(x) { … }`, without trailing newline. */
  readonly source: string
  /** What the source refers to besides its parameters: names and values. */
  readonly globals: ReadonlyMap<string, unknown>
  /** Line of `source` (from 1) -> node. */
  readonly lineMap: ReadonlyMap<number, Node>
}

/** PyTorch spells `log_softmax`, JavaScript `logSoftmax`. */
const camelCase = (name: string): string => name.replace(/([a-z0-9])_+([a-z0-9])/g, (_, a: string, b: string) => a + b.toUpperCase())

/** Values that hold memory are released at their last use; a shape or a number need not be. */
const holdsMemory = (node: Node): boolean => node.op !== 'get_attr' && node.target !== (getattr as unknown as TargetFunction)

/** Writes the code of graphs. Subclass it and give it to `graph.setCodegen` to change how. */
export class CodeGen {
  /** Rewrites the lines of the body; see Graph.onGenerateCode. */
  bodyTransformer: BodyTransformer | null = null

  /** Name of the function in the source. */
  get functionName(): string {
    return 'forward'
  }

  /** The line that opens the function. */
  functionHead(parameters: readonly string[]): string {
    return `function ${this.functionName}(${parameters.join(', ')}) {`
  }

  /** The statement that returns `value` (source text). */
  returnStatement(value: string): string {
    return `return ${value}`
  }

  generate(graph: Graph, options: { readonly name?: string; readonly verbose?: boolean } = {}): GeneratedCode {
    return new Writer(this, graph, options.verbose === true).write()
  }
}

class Writer {
  readonly #codegen: CodeGen
  readonly #graph: Graph
  readonly #verbose: boolean
  readonly #globals = new Map<string, unknown>()
  readonly #globalNames = new Map<unknown, string>()
  readonly #names = new Map<Node, string>()
  readonly #namespace = new Namespace()
  readonly #parameters: string[] = []
  readonly #body: string[] = []
  readonly #lastUses = new Map<Node, Node[]>()
  readonly #reassigned = new Set<Node>()
  #lastStack = ''

  constructor(codegen: CodeGen, graph: Graph, verbose: boolean) {
    this.#codegen = codegen
    this.#graph = graph
    this.#verbose = verbose
  }

  write(): GeneratedCode {
    for (const node of this.#graph.nodes) this.#names.set(node, this.#namespace.create(node.name))
    this.#findLastUses()
    let index = 0
    const nodes: Node[] = []
    for (const node of this.#graph.nodes) {
      const before = this.#body.length
      this.#emit(node)
      for (let i = before; i < this.#body.length; i++) this.#body[i] += `/*#${index}*/`
      nodes.push(node)
      index++
    }
    const transformer = this.#codegen.bodyTransformer
    const body = transformer === null ? this.#body : [...transformer(this.#body)]
    const lines = [
      this.#codegen.functionHead(this.#parameters),
      ...body
        .flatMap((l) => l.split('\n'))
        .filter((l) => l !== '')
        .map((l) => `  ${l}`),
      '}',
    ]
    const lineMap = new Map<number, Node>()
    const clean = lines.map((line, i) => {
      const mark = /\/\*#(\d+)\*\/$/.exec(line)
      if (mark === null) return line
      lineMap.set(i + 1, nodes[Number(mark[1])] as Node)
      return line.slice(0, mark.index)
    })
    return { source: clean.join('\n'), globals: this.#globals, lineMap }
  }

  /** Where each value is used last, so that it can be released there. */
  #findLastUses(): void {
    const seen = new Set<Node>()
    for (const user of this.#graph.nodes.reversed()) {
      for (const input of user.allInputNodes) {
        if (seen.has(input)) continue
        seen.add(input)
        if (user.op === 'output' || !holdsMemory(input)) continue
        this.#reassigned.add(input)
        const list = this.#lastUses.get(user)
        if (list === undefined) this.#lastUses.set(user, [input])
        else list.push(input)
      }
    }
  }

  #name(node: Node): string {
    return this.#names.get(node) ?? node.name
  }

  #emit(node: Node): void {
    if (this.#verbose) this.#comment(node)
    if (node.op === 'placeholder') return this.#parameter(node)
    if (node.op === 'output') return void this.#body.push(this.#codegen.returnStatement(this.#value(node.args[0])))
    const expression = this.#expression(node)
    const keyword = this.#reassigned.has(node) ? 'let' : 'const'
    const type = this.#verbose ? annotation(node) : ''
    const dead = node.users.size === 0
    const release = (this.#lastUses.get(node) ?? []).map((n) => this.#name(n))
    const statement = dead ? expression : `${keyword} ${this.#name(node)} = ${expression}`
    this.#body.push(`${statement}${release.length === 0 ? '' : `; ${release.join(' = ')} = null`}${type}`)
  }

  #comment(node: Node): void {
    const trace = node.stackTrace
    if (!(trace instanceof CapturedStack) || node.op === 'placeholder' || node.op === 'output') return
    const frame = trace.userFrame
    if (frame === undefined) return
    const text = String(trace)
    if (text === this.#lastStack) return
    this.#lastStack = text
    const code = text.trimEnd().split('\n').at(-1)?.trim() ?? ''
    this.#body.push(`// File: ${frame.file}:${frame.line} in ${frame.fn}, code: ${code}`)
  }

  #parameter(node: Node): void {
    const target = node.target as string
    const bare = target.replace(/^\*+/, '')
    const name = isIdentifier(bare) && bare === this.#name(node) ? bare : this.#name(node)
    const fallback = node.args.length === 0 ? '' : ` = ${this.#value(node.args[0])}`
    this.#parameters.push(target.startsWith('*') && !target.startsWith('**') ? `...${name}` : `${name}${fallback}`)
  }

  #expression(node: Node): string {
    switch (node.op) {
      case 'get_attr':
        return this.#path(node.target as string)
      case 'call_module':
        return `${this.#path(node.target as string)}.call(${this.#callArguments(node.args, node.kwargs)})`
      case 'call_method':
        return `${this.#value(node.args[0])}${memberAccess(node.target as string)}(${this.#callArguments(node.args.slice(1), node.kwargs)})`
      default:
        return this.#functionCall(node)
    }
  }

  #functionCall(node: Node): string {
    const fn = node.target as TargetFunction
    const name = targetInfo(fn)?.name ?? ''
    const [first, second] = node.args
    if (name === 'builtins.getattr' && typeof second === 'string' && isIdentifier(second)) return `${this.#value(first)}.${second}`
    return `${this.#function(fn)}(${this.#callArguments(node.args, node.kwargs)})`
  }

  #function(fn: TargetFunction): string {
    const info = targetInfo(fn)
    if (info !== undefined && /^(torch|operator)\./.test(info.name)) {
      const parts = info.name.split('.')
      const path = [...parts.slice(0, -1), camelCase(parts.at(-1) as string)]
      let holder = this.#globals.get(path[0] as string) as Record<string, unknown> | undefined
      if (holder === undefined) this.#globals.set(path[0] as string, (holder = {}))
      for (const part of path.slice(1, -1)) holder = (holder[part] ??= {}) as Record<string, unknown>
      holder[path.at(-1) as string] = fn
      return path.join('.')
    }
    const short = info?.shortName ?? fn.name
    if (short === '') throw new GraphError('Unable to represent an anonymous function in generated code: give it a name with fx.wrap(fn, { name }).')
    return this.#global(short, fn)
  }

  #global(wish: string, value: unknown): string {
    let name = this.#globalNames.get(value)
    if (name === undefined) {
      name = this.#namespace.create(wish)
      this.#globalNames.set(value, name)
      this.#globals.set(name, value)
    }
    return name
  }

  #path(path: string): string {
    return `this${path.split('.').map(memberAccess).join('')}`
  }

  #callArguments(args: readonly Argument[], kwargs: Readonly<Record<string, Argument>>): string {
    const parts = args.map((a) => this.#value(a))
    const entries = Object.entries(kwargs)
    if (entries.length > 0) parts.push(`{ ${entries.map(([k, v]) => `${isIdentifier(k) ? k : JSON.stringify(k)}: ${this.#value(v)}`).join(', ')} }`)
    return parts.join(', ')
  }

  #value(value: Argument): string {
    if (value === null || value === undefined) return String(value)
    if (typeof value === 'string') return quote(value)
    if (typeof value === 'number') return Object.is(value, -0) ? '-0' : String(value)
    if (typeof value === 'boolean') return String(value)
    if (typeof value === 'function') return this.#function(value as TargetFunction)
    if (value instanceof Node) return this.#name(value)
    if (Array.isArray(value)) return `[${value.map((v) => this.#value(v as Argument)).join(', ')}]`
    if (value instanceof Slice)
      return `new ${this.#global('Slice', Slice)}(${[value.start, value.stop, value.step].map((v) => this.#value(v as Argument)).join(', ')})`
    const prototype: unknown = Object.getPrototypeOf(value)
    if (prototype === Object.prototype || prototype === null) {
      const entries = Object.entries(value as Record<string, Argument>)
      return entries.length === 0
        ? '{}'
        : `{ ${entries.map(([k, v]) => `${isIdentifier(k) ? k : JSON.stringify(k)}: ${this.#value(v)}`).join(', ')} }`
    }
    return this.#global(isTensorLike(value) ? (isParameter(value) ? '_parameter' : '_tensor') : '_constant', value)
  }
}

const quote = (text: string): string => `'${JSON.stringify(text).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'")}'`

const memberAccess = (name: string): string => (isIdentifier(name) ? `.${name}` : `[${/^\d+$/.test(name) ? name : JSON.stringify(name)}]`)
