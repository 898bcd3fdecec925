// From a graph to JavaScript that a person would have written. The compiled function gets the functions it calls as constants; no lookups remain.
import { targetInfo } from '../protocol/index.ts'
import type { TargetFunction } from '../protocol/index.ts'
import { annotation, withEnvironment } from './annotation.ts'
import type { SpecOptions } from './annotation.ts'
import { Globals } from './codeGlobals.ts'
import type { BodyTransformer, CodeGen } from './codegen.ts'
import { GraphError } from './errors.ts'
import type { HeadTypes, TypeStyle } from './functionHead.ts'
import { GeneratedCode } from './generatedCode.ts'
import type { Graph } from './graph.ts'
import { Namespace, isIdentifier } from './namespace.ts'
import { Node } from './node.ts'
import type { Argument, Kwargs } from './node.ts'
import { getattr } from './operator.ts'
import { moduleText, originCode, originOf } from './origin.ts'
import { Slice } from './slice.ts'
import { TextBuilder } from './textBuilder.ts'
import { valueType } from './typeText.ts'

/** Options of code generation. */
export interface WriteOptions extends SpecOptions {
  /** Adds comments: the user's lines, and shapes and dtypes as far as the nodes' meta tells them. */
  readonly verbose?: boolean
  /** With `verbose`: a line wherever the module that made the nodes changes, `// Module: layer1.0 (BasicBlock)`. Default false. */
  readonly includeModule?: boolean
  /** Types of parameters, results and variables as far as nodes tell them: TypeScript's annotations, or a JSDoc comment. For reading; what is compiled has none. */
  readonly types?: TypeStyle
  /** Comments in colours for terminals. Default false. */
  readonly colored?: boolean
}

/** Writes the code of `graph` in the manner of `codegen`. Throws GraphError for a call of a function that has no name. */
export function writeCode(codegen: CodeGen, graph: Graph, options: WriteOptions): GeneratedCode {
  return new Writer(codegen, graph, options).write()
}

const GETATTR = getattr as unknown as TargetFunction

/** Values that hold memory are released at their last use; an attribute is held by the module anyway, and a shape or a number is small. */
const holdsMemory = (node: Node): boolean => node.op !== 'get_attr' && node.target !== GETATTR

/** Colours of terminals. */
const DIM = '\u001b[2m'
const GREEN = '\u001b[2;32m'
const PLAIN = '\u001b[0m'

/** The type of an input: with null among its values when that is its default. */
function parameterType(node: Node): string | null {
  const type = valueType(node)
  return type !== null && node.args.length > 0 && node.args[0] === null ? `${type} | null` : type
}

class Writer {
  readonly #codegen: CodeGen
  readonly #options: WriteOptions
  readonly #globals: Globals
  /** The nodes in order; the lists below have an entry for each. */
  readonly #order: readonly Node[]
  readonly #names: string[] = []
  /** Place of the last user; 0 for none, and for values that are not released. */
  readonly #lastUse: Uint32Array
  readonly #namespace = new Namespace()
  readonly #parameters: string[] = []
  readonly #body = new TextBuilder()
  /** The lines of the body, where somebody wants to change them. */
  readonly #lines: string[] | null
  /** The node of each line of the body. */
  readonly #nodes: (Node | null)[] = []
  #lastPlace: string | null = null
  #lastModule: string | null = null

  constructor(codegen: CodeGen, graph: Graph, options: WriteOptions) {
    this.#codegen = codegen
    this.#options = withEnvironment(options)
    this.#order = graph.numberNodes()
    this.#lastUse = new Uint32Array(this.#order.length)
    this.#lines = codegen.bodyTransformer === null ? null : []
    this.#globals = new Globals(this.#namespace)
  }

  write(): GeneratedCode {
    for (const [name, value] of this.#codegen.additionalGlobals()) this.#globals.reserve(name, value)
    for (const name of this.#codegen.reservedNames()) this.#namespace.reserve(name)
    for (const node of this.#order) this.#names.push(this.#namespace.create(node.name))
    this.#findLastUses()
    for (const node of this.#order) this.#emit(node)
    return this.#assemble()
  }

  #assemble(): GeneratedCode {
    if (this.#lines !== null) this.#transform(this.#lines)
    const head = this.#codegen.functionHead(this.#parameters, this.#headTypes())
    const nodes: (Node | null)[] = head.split('\n').map(() => null)
    for (const node of this.#nodes) nodes.push(node)
    nodes.push(null)
    return new GeneratedCode([head, ...(this.#nodes.length === 0 ? [] : [String(this.#body)]), '}'].join('\n'), this.#globals.values, nodes)
  }

  /** The types of the head, in the order of the parameters. */
  #headTypes(): HeadTypes | null {
    const style = this.#options.types
    if (style === undefined) return null
    const output = this.#order.at(-1)
    const parameters = this.#order.filter((node) => node.op === 'placeholder').map(parameterType)
    const usesThis = this.#order.some((node) => node.op === 'get_attr' || node.op === 'call_module')
    return { style, parameters, returns: output?.op === 'output' ? valueType(output) : null, usesThis }
  }

  /** The body becomes what the transformer makes of it. */
  #transform(lines: readonly string[]): void {
    const transformer = this.#codegen.bodyTransformer as BodyTransformer
    const places = new LinePlaces(lines, this.#nodes.splice(0))
    const transformed: unknown = transformer(lines)
    if (!Array.isArray(transformed)) throw new GraphError('onGenerateCode: the transformer must return the lines of the body as an array of strings.')
    for (const line of transformed as string[]) {
      const node = places.nodeOf(line)
      for (const part of line.split('\n')) if (part !== '' || line === '') this.#write(part, node)
    }
  }

  /** Where each value is used last, so that it can be released there. What the output uses lives on. */
  #findLastUses(): void {
    for (const user of this.#order)
      for (const input of user.allInputNodes)
        if (this.#owns(input) && holdsMemory(input)) this.#lastUse[input.position] = user.op === 'output' ? 0 : user.position
  }

  /** Whether a node is one of this graph's: a graph that lint refuses can still be printed. */
  #owns(node: Node): boolean {
    return this.#order[node.position] === node
  }

  /** A statement, or several lines of one. */
  #push(text: string, node: Node | null): void {
    if (this.#lines !== null) {
      this.#lines.push(text)
      this.#nodes.push(node)
    } else if (node !== null && node.op !== 'output') this.#write(text, node)
    else for (const line of text.includes('\n') ? text.split('\n').filter((l) => l !== '') : [text]) this.#write(line, node)
  }

  #write(line: string, node: Node | null): void {
    this.#body.add(`  ${line}`)
    this.#nodes.push(node)
  }

  #emit(node: Node): void {
    if (node.op === 'placeholder') return this.#parameter(node)
    if (node.op === 'output') return this.#push(this.#codegen.returnStatement(this.#value(node.args[0])), node)
    if (this.#options.verbose === true) this.#comment(node)
    let line = this.#expression(node)
    if (node.users.size > 0) line = `${this.#lastUse[node.position] === 0 ? 'const' : 'let'} ${this.#name(node)}${this.#annotation(node)} = ${line}`
    let released = false
    for (const input of node.allInputNodes) {
      if (this.#lastUse[input.position] !== node.position || !this.#owns(input)) continue
      line += `${released ? ' =' : ';'} ${this.#name(input)}`
      released = true
    }
    if (released) line += this.#options.types === 'typescript' ? ' = null!' : ' = null'
    const known = this.#options.verbose === true ? annotation(node, this.#options) : null
    this.#push(known === null ? line : `${line}  ${this.#colored(`// ${known}`, GREEN)}`, node)
  }

  /** `: Tensor`, where it is known and asked for. */
  #annotation(node: Node): string {
    const type = this.#options.types === 'typescript' ? valueType(node) : null
    return type === null ? '' : `: ${type}`
  }

  #colored(comment: string, colour: string): string {
    return this.#options.colored === true ? `${colour}${comment}${PLAIN}` : comment
  }

  #name(node: Node): string {
    return this.#owns(node) ? (this.#names[node.position] as string) : node.name
  }

  /** The module and the user's line, where they differ from those of the node before. */
  #comment(node: Node): void {
    if (this.#options.includeModule === true) this.#moduleComment(node)
    const frame = originOf(node)
    if (frame === null) {
      if (this.#lastPlace !== '') this.#pushComment('No stacktrace found for following nodes')
      this.#lastPlace = ''
      return
    }
    const place = `${frame.file}:${frame.line}:${frame.fn}`
    if (place === this.#lastPlace) return
    this.#lastPlace = place
    const code = originCode(node)
    this.#pushComment(`File: ${frame.file}:${frame.line} in ${frame.fn}${code === '' ? '' : `, code: ${code}`}`)
  }

  #moduleComment(node: Node): void {
    const module = moduleText(node)
    if (module === this.#lastModule) return
    this.#lastModule = module
    if (module !== null) this.#pushComment(`Module: ${module}`)
  }

  #pushComment(text: string): void {
    this.#push(this.#colored(`// ${text}`, DIM), null)
  }

  #parameter(node: Node): void {
    const target = node.target as string
    const name = this.#name(node)
    const known = this.#options.verbose === true ? annotation(node, this.#options) : null
    const comment = known === null ? '' : ` ${this.#colored(`/* ${known.replaceAll('*/', '* /')} */`, GREEN)}`
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
