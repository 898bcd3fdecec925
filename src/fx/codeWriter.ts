// From a graph to JavaScript that a person would have written. The compiled function gets the functions it calls as constants; no lookups remain.
import { targetInfo } from '../protocol/index.ts'
import type { TargetFunction } from '../protocol/index.ts'
import { annotation } from './annotation.ts'
import type { SpecOptions } from './annotation.ts'
import { Globals } from './codeGlobals.ts'
import type { CodeGen } from './codegen.ts'
import { GeneratedCode } from './generatedCode.ts'
import type { Graph } from './graph.ts'
import { Namespace, isIdentifier } from './namespace.ts'
import { Node } from './node.ts'
import type { Argument, Kwargs } from './node.ts'
import { getattr } from './operator.ts'
import { originCode, originOf } from './origin.ts'
import { Slice } from './slice.ts'

/** Options of code generation. */
export interface WriteOptions extends SpecOptions {
  /** Adds comments: the user's lines, and shapes and dtypes as far as the nodes' meta tells them. */
  readonly verbose?: boolean
}

/** Writes the code of `graph` in the manner of `codegen`. Throws GraphError for a call of a function that has no name. */
export function writeCode(codegen: CodeGen, graph: Graph, options: WriteOptions): GeneratedCode {
  return new Writer(codegen, graph, options).write()
}

const GETATTR = getattr as unknown as TargetFunction

/** Values that hold memory are released at their last use; an attribute is held by the module anyway, and a shape or a number is small. */
const holdsMemory = (node: Node): boolean => node.op !== 'get_attr' && node.target !== GETATTR

/** What is known of a node's variable. */
interface Variable {
  readonly name: string
  /** Somebody was found that uses it; searched from the end, that is its last use. */
  used: boolean
  /** It is set to null after its last use, so it is no constant. */
  released: boolean
  /** Variables that are used last where this one is computed; null for none. */
  releases: Variable[] | null
}

class Writer {
  readonly #codegen: CodeGen
  readonly #graph: Graph
  readonly #options: WriteOptions
  readonly #globals: Globals
  readonly #variables = new Map<Node, Variable>()
  readonly #namespace = new Namespace()
  readonly #parameters: string[] = []
  readonly #body: string[] = []
  /** The node of each line of the body. */
  readonly #nodes: (Node | null)[] = []
  #lastPlace: string | null = null

  constructor(codegen: CodeGen, graph: Graph, options: WriteOptions) {
    this.#codegen = codegen
    this.#graph = graph
    this.#options = options
    this.#globals = new Globals(this.#namespace)
  }

  write(): GeneratedCode {
    for (const [name, value] of this.#codegen.additionalGlobals()) this.#globals.reserve(name, value)
    for (const name of this.#codegen.reservedNames()) this.#namespace.reserve(name)
    for (const node of this.#graph.nodes)
      this.#variables.set(node, { name: this.#namespace.create(node.name), used: false, released: false, releases: null })
    this.#findLastUses()
    for (const node of this.#graph.nodes) this.#emit(node)
    return this.#assemble()
  }

  #assemble(): GeneratedCode {
    const lines = this.#codegen.functionHead(this.#parameters).split('\n')
    const nodes: (Node | null)[] = lines.map(() => null)
    const transformer = this.#codegen.bodyTransformer
    const body = transformer === null ? this.#body : transformer(this.#body)
    const place = transformer === null ? null : new LinePlaces(this.#body, this.#nodes)
    for (const [i, line] of body.entries()) {
      const node = place === null ? (this.#nodes[i] as Node | null) : place.nodeOf(line)
      for (const part of line.includes('\n') ? line.split('\n').filter((l) => l !== '') : [line]) {
        lines.push(`  ${part}`)
        nodes.push(node)
      }
    }
    lines.push('}')
    nodes.push(null)
    return new GeneratedCode(lines.join('\n'), this.#globals.values, nodes)
  }

  /** Where each value is used last, so that it can be released there. What the output uses lives on. */
  #findLastUses(): void {
    for (const user of this.#graph.nodes.reversed()) {
      const inputs = user.allInputNodes
      for (let i = 0; i < inputs.length; i++) {
        const input = inputs[i] as Node
        const variable = this.#variables.get(input)
        if (variable === undefined || variable.used) continue
        variable.used = true
        if (user.op === 'output' || !holdsMemory(input)) continue
        variable.released = true
        const at = this.#variables.get(user) as Variable
        if (at.releases === null) at.releases = [variable]
        else at.releases.push(variable)
      }
    }
  }

  #push(line: string, node: Node | null): void {
    this.#body.push(line)
    this.#nodes.push(node)
  }

  #emit(node: Node): void {
    if (node.op === 'placeholder') return this.#parameter(node)
    if (node.op === 'output') return this.#push(this.#codegen.returnStatement(this.#value(node.args[0])), node)
    if (this.#options.verbose === true) this.#comment(node)
    const expression = this.#expression(node)
    const variable = this.#variables.get(node) as Variable
    const statement = node.users.size === 0 ? expression : `${variable.released ? 'let' : 'const'} ${variable.name} = ${expression}`
    let release = ''
    if (variable.releases !== null) {
      for (const { name } of variable.releases) release += release === '' ? `; ${name}` : ` = ${name}`
      release += ' = null'
    }
    const known = this.#options.verbose === true ? annotation(node, this.#options) : null
    this.#push(`${statement}${release}${known === null ? '' : `  // ${known}`}`, node)
  }

  #name(node: Node): string {
    return this.#variables.get(node)?.name ?? node.name
  }

  /** The user's line, where it differs from that of the node before. */
  #comment(node: Node): void {
    const frame = originOf(node)
    if (frame === null) {
      if (this.#lastPlace !== '') this.#push('// No stacktrace found for following nodes', null)
      this.#lastPlace = ''
      return
    }
    const place = `${frame.file}:${frame.line}:${frame.fn}`
    if (place === this.#lastPlace) return
    this.#lastPlace = place
    const code = originCode(node)
    this.#push(`// File: ${frame.file}:${frame.line} in ${frame.fn}${code === '' ? '' : `, code: ${code}`}`, null)
  }

  #parameter(node: Node): void {
    const target = node.target as string
    const name = this.#name(node)
    const known = this.#options.verbose === true ? annotation(node, this.#options) : null
    const comment = known === null ? '' : ` /* ${known.replaceAll('*/', '* /')} */`
    const rest = target.startsWith('*') && !target.startsWith('**')
    const fallback = rest || node.args.length === 0 ? '' : ` = ${this.#value(node.args[0])}`
    this.#parameters.push(`${rest ? '...' : ''}${name}${comment}${fallback}`)
  }

  #expression(node: Node): string {
    const { args, kwargs } = node
    switch (node.op) {
      case 'get_attr':
        return this.#path(node.target as string)
      case 'call_module':
        return `${this.#path(node.target as string)}.call(${this.#arguments(args, 0, kwargs)})`
      case 'call_method':
        // A traced value that was called.
        return `${this.#operand(args[0])}${node.target === '__call__' ? '' : memberAccess(node.target as string)}(${this.#arguments(args, 1, kwargs)})`
      default:
        return this.#functionCall(node.target as TargetFunction, args, kwargs)
    }
  }

  #functionCall(fn: TargetFunction, args: readonly Argument[], kwargs: Kwargs): string {
    const name = args[1]
    if (fn === GETATTR && args.length === 2 && typeof name === 'string' && isIdentifier(name)) return `${this.#operand(args[0])}.${name}`
    return `${this.#globals.callee(fn, targetInfo(fn))}(${this.#arguments(args, 0, kwargs)})`
  }

  #path(path: string): string {
    return path.includes('.') ? `this${path.split('.').map(memberAccess).join('')}` : `this${memberAccess(path)}`
  }

  /** A value before a dot. */
  #operand(value: Argument): string {
    return value instanceof Node ? this.#name(value) : `(${this.#value(value)})`
  }

  #arguments(args: readonly Argument[], from: number, kwargs: Kwargs): string {
    let text = ''
    for (let i = from; i < args.length; i++) text += i === from ? this.#value(args[i]) : `, ${this.#value(args[i])}`
    const options = this.#object(kwargs)
    return options === '{}' ? text : text === '' ? options : `${text}, ${options}`
  }

  #object(value: Readonly<Record<string, Argument>>): string {
    const keys = Object.keys(value)
    return keys.length === 0 ? '{}' : `{ ${keys.map((k) => `${propertyKey(k)}: ${this.#value(value[k])}`).join(', ')} }`
  }

  #value(value: Argument): string {
    if (value instanceof Node) return this.#name(value)
    if (value === null || value === undefined) return String(value)
    if (typeof value === 'string') return quote(value)
    if (typeof value === 'number') return Object.is(value, -0) ? '-0' : String(value)
    if (typeof value === 'boolean') return String(value)
    if (typeof value === 'bigint') return `${String(value)}n`
    if (typeof value === 'function') return this.#globals.callee(value as TargetFunction, targetInfo(value))
    if (Array.isArray(value)) return `[${value.map((v) => this.#value(v as Argument)).join(', ')}]`
    if (value instanceof Slice)
      return `new ${this.#globals.constant(Slice)}(${[value.start, value.stop, value.step].map((v) => this.#value(v as Argument)).join(', ')})`
    const prototype: unknown = Object.getPrototypeOf(value)
    if (prototype === Object.prototype || prototype === null) return this.#object(value as Readonly<Record<string, Argument>>)
    return this.#globals.constant(value)
  }
}

/** Finds the nodes of lines that went through a transformer: equal lines are the same line, in order. */
class LinePlaces {
  readonly #places = new Map<string, (Node | null)[]>()

  constructor(body: readonly string[], nodes: readonly (Node | null)[]) {
    for (let i = body.length - 1; i >= 0; i--) {
      const line = body[i] as string
      const list = this.#places.get(line)
      if (list === undefined) this.#places.set(line, [nodes[i] as Node | null])
      else list.push(nodes[i] as Node | null)
    }
  }

  nodeOf(line: string): Node | null {
    return this.#places.get(line)?.pop() ?? null
  }
}

const quote = (text: string): string => `'${JSON.stringify(text).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'")}'`

const propertyKey = (key: string): string => (key === '__proto__' ? "['__proto__']" : isIdentifier(key) ? key : quote(key))

const memberAccess = (name: string): string => (isIdentifier(name) ? `.${name}` : `[${/^(0|[1-9]\d*)$/.test(name) ? name : quote(name)}]`)
