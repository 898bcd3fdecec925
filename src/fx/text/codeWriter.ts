// Writes a graph as readable JavaScript. The functions that the code calls are bound to names once, so that running it looks nothing up.
import {
  blockComment,
  isFunction,
  isIdentifier,
  lineComment,
  memberAccess,
  propertyKey,
  remembered,
  scalarLiteral,
  targetInfo,
} from '../../protocol/index.ts'
import type { TargetFunction } from '../../protocol/index.ts'
import { annotation, withEnvironment } from './annotation.ts'
import { Globals } from './codeGlobals.ts'
import { GraphError } from '../graph/errors.ts'
import { WrittenCode } from './generatedCode.ts'
import type { BodyTransformer, GeneratedCode, WriteOptions } from '../graph/graphText.ts'
import { Namespace } from '../graph/namespace.ts'
import { Node, isRecord } from '../graph/node.ts'
import type { Argument, Kwargs, NodeGraph, OutputNode, PlaceholderNode } from '../graph/node.ts'
import { getattr } from '../graph/operator.ts'
import { moduleText, originCode, originOf } from '../graph/origin.ts'
import { Slice } from '../graph/pythonValues.ts'
import { TextBuilder } from './textBuilder.ts'
import { valueType } from './typeText.ts'
import type { HeadTypes } from './typeText.ts'

/** The parts of the code that can be customized; class CodeGen has the defaults. */
export interface CodeStyle {
  readonly bodyTransformer: BodyTransformer | null
  functionHead(parameters: readonly string[], types: HeadTypes | null): string
  returnStatement(value: string): string
  additionalGlobals(): readonly (readonly [string, unknown])[]
  reservedNames(): readonly string[]
}

/** Whether to release the value after its last use. The module holds its attributes anyway, and a shape or number is small. */
const holdsMemory = (node: Node): boolean => node.op !== 'get_attr' && node.target !== getattr

/** Escape sequences for terminals. */
const DIM = '\u001b[2m'
const GREEN = '\u001b[2;32m'
const PLAIN = '\u001b[0m'

/** The type of a parameter, which includes null if that is its default. */
function parameterType(node: Node): string | null {
  const type = valueType(node)
  return type !== null && node.args.length > 0 && node.args[0] === null ? `${type} | null` : type
}

const pathText = (path: string): string => (path.includes('.') ? `this${path.split('.').map(memberAccess).join('')}` : `this${memberAccess(path)}`)

/** Writes the code of `graph` in the style of `codegen`. Throws GraphError for a call of a function that has no name. */
export const writeCode = (codegen: CodeStyle, graph: NodeGraph, options: WriteOptions): GeneratedCode =>
  new CodeWriter(codegen, graph, options).write()

/** Writes the code of one graph. */
class CodeWriter {
  readonly #style: CodeStyle
  readonly #options: WriteOptions
  /** The nodes in order. The lists below have an entry for each. */
  readonly #order: readonly Node[]
  readonly #names: readonly string[]
  /** Position of the last user; 0 if there is none, and for values that are not released. */
  readonly #lastUse: Uint32Array
  readonly #globals: Globals
  readonly #parameters: string[] = []
  readonly #body = new TextBuilder()
  /** The lines of the body if a transformer is going to change them; otherwise null, and lines go directly to the body. */
  readonly #lines: string[] | null
  /** The node of each line of the body. */
  readonly #lineNodes: (Node | null)[] = []
  #lastPlace: string | null = null
  #lastModule: string | null = null

  constructor(style: CodeStyle, graph: NodeGraph, options: WriteOptions) {
    this.#style = style
    this.#options = withEnvironment(options)
    this.#order = graph.numberNodes()
    this.#lastUse = new Uint32Array(this.#order.length)
    this.#lines = style.bodyTransformer === null ? null : []
    const namespace = new Namespace()
    this.#globals = new Globals(namespace)
    for (const [name, value] of style.additionalGlobals()) this.#globals.reserve(name, value)
    for (const name of style.reservedNames()) namespace.reserve(name)
    this.#names = this.#order.map((node) => namespace.create(node.name))
  }

  write(): GeneratedCode {
    this.#findLastUses()
    for (const node of this.#order) this.#addNode(node)
    const { bodyTransformer } = this.#style
    if (this.#lines !== null && bodyTransformer !== null) this.#addTransformed(bodyTransformer, this.#lines)
    const head = this.#style.functionHead(this.#parameters, this.#headTypes())
    const nodes: (Node | null)[] = head.split('\n').map(() => null)
    for (const node of this.#lineNodes) nodes.push(node)
    nodes.push(null)
    return new WrittenCode([head, ...(this.#lineNodes.length === 0 ? [] : [String(this.#body)]), '}'].join('\n'), this.#globals.values, nodes)
  }

  /** The types for the head, if the options ask for types. */
  #headTypes(): HeadTypes | null {
    const style = this.#options.types
    if (style === undefined) return null
    const output = this.#order.at(-1)
    const types = this.#order.filter((node) => node.op === 'placeholder').map(parameterType)
    const usesThis = this.#order.some((node) => node.op === 'get_attr' || node.op === 'call_module')
    return { style, parameters: types, returns: output?.op === 'output' ? valueType(output) : null, usesThis }
  }

  /** Writes the body as the transformer changes it. */
  #addTransformed(transformer: BodyTransformer, original: readonly string[]): void {
    const places = new LinePlaces(original, this.#lineNodes.splice(0))
    const transformed = transformer(original)
    if (!Array.isArray(transformed) || transformed.some((line) => typeof line !== 'string'))
      throw new GraphError('onGenerateCode: the transformer must return the lines of the body as an array of strings.')
    for (const line of transformed) {
      const node = places.nodeOf(line)
      for (const part of line.split('\n')) if (part !== '' || line === '') this.#addLine(part, node)
    }
  }

  /** Finds where each value is used last, to release it there. The values that the output returns are not released. */
  #findLastUses(): void {
    for (const user of this.#order)
      for (const input of user.allInputNodes)
        if (this.#owns(input) && holdsMemory(input)) this.#lastUse[input.position] = user.op === 'output' ? 0 : user.position
  }

  /** Whether a node belongs to this graph; a graph that lint rejects can still be printed. */
  #owns(node: Node): boolean {
    return this.#order[node.position] === node
  }

  /** Adds a statement, which may have several lines. */
  #addStatement(text: string, node: Node | null): void {
    if (this.#lines !== null) {
      this.#lines.push(text)
      this.#lineNodes.push(node)
    } else if (node !== null && node.op !== 'output') this.#addLine(text, node)
    else for (const line of text.includes('\n') ? text.split('\n').filter((l) => l !== '') : [text]) this.#addLine(line, node)
  }

  #addLine(line: string, node: Node | null): void {
    this.#body.add(`  ${line}`)
    this.#lineNodes.push(node)
  }

  #addNode(node: Node): void {
    if (node.op === 'placeholder') return this.#writeParameter(node)
    if (node.op === 'output') return this.#addStatement(this.#style.returnStatement(this.#valueText(node.args[0])), node)
    if (this.#options.verbose === true) this.#writeComments(node)
    let line = this.#expressionText(node)
    if (node.users.size > 0) line = `${this.#lastUse[node.position] === 0 ? 'const' : 'let'} ${this.#nameOf(node)}${this.#typeNote(node)} = ${line}`
    let released = false
    for (const input of node.allInputNodes) {
      if (this.#lastUse[input.position] !== node.position || !this.#owns(input)) continue
      line += `${released ? ' =' : ';'} ${this.#nameOf(input)}`
      released = true
    }
    if (released) line += this.#options.types === 'typescript' ? ' = null!' : ' = null'
    const known = this.#options.verbose === true ? annotation(node, this.#options) : null
    this.#addStatement(known === null ? line : `${line}  ${this.#colored(`// ${lineComment(known)}`, GREEN)}`, node)
  }

  /** `: Tensor`, if the type is known and the options ask for it. */
  #typeNote(node: Node): string {
    const type = this.#options.types === 'typescript' ? valueType(node) : null
    return type === null ? '' : `: ${type}`
  }

  #colored(comment: string, colour: string): string {
    return this.#options.colored === true ? `${colour}${comment}${PLAIN}` : comment
  }

  #nameOf(node: Node): string {
    return (this.#owns(node) ? this.#names[node.position] : undefined) ?? node.name
  }

  /** Adds comments with the module and the user's line, if they differ from those of the previous node. */
  #writeComments(node: Node): void {
    if (this.#options.includeModule === true) this.#addModule(node)
    const frame = originOf(node)
    if (frame === null) {
      if (this.#lastPlace !== '') this.#addComment('No stacktrace found for following nodes')
      this.#lastPlace = ''
      return
    }
    const place = `${frame.file}:${frame.line}:${frame.fn}`
    if (place === this.#lastPlace) return
    this.#lastPlace = place
    const code = originCode(node)
    this.#addComment(`File: ${frame.file}:${frame.line} in ${frame.fn}${code === '' ? '' : `, code: ${code}`}`)
  }

  #addModule(node: Node): void {
    const module = moduleText(node)
    if (module === this.#lastModule) return
    this.#lastModule = module
    if (module !== null) this.#addComment(`Module: ${module}`)
  }

  #addComment(text: string): void {
    this.#addStatement(this.#colored(`// ${lineComment(text)}`, DIM), null)
  }

  #writeParameter(node: PlaceholderNode): void {
    const { target } = node
    const name = this.#nameOf(node)
    const known = this.#options.verbose === true ? annotation(node, this.#options) : null
    const comment = known === null ? '' : ` ${this.#colored(`/* ${blockComment(known)} */`, GREEN)}`
    const rest = target.startsWith('*') && !target.startsWith('**')
    const fallback = rest || node.args.length === 0 ? '' : ` = ${this.#valueText(node.args[0])}`
    this.#parameters.push(`${rest ? '...' : ''}${name}${comment}${fallback}`)
  }

  #expressionText(node: Exclude<Node, PlaceholderNode | OutputNode>): string {
    const { args, kwargs } = node
    switch (node.op) {
      case 'get_attr':
        return pathText(node.target)
      case 'call_module':
        return `${pathText(node.target)}.call(${this.#argumentsText(args, 0, kwargs)})`
      case 'call_method':
        // `__call__` is a call of a traced value itself.
        return `${this.#operandText(args[0])}${node.target === '__call__' ? '' : memberAccess(node.target)}(${this.#argumentsText(args, 1, kwargs)})`
      case 'call_function':
        return this.#callText(node.target, args, kwargs)
    }
  }

  #callText(fn: TargetFunction, args: readonly Argument[], kwargs: Kwargs): string {
    const name = args[1]
    if (fn === getattr && args.length === 2 && typeof name === 'string' && isIdentifier(name)) return `${this.#operandText(args[0])}.${name}`
    const property = targetInfo(fn)?.reads
    if (property !== undefined) return `${this.#operandText(args[0])}.${property}${args.length > 1 ? `[${this.#valueText(args[1])}]` : ''}`
    return `${this.#globals.callee(fn, targetInfo(fn))}(${this.#argumentsText(args, 0, kwargs)})`
  }

  /** A value as the object of a member access. */
  #operandText(value: Argument): string {
    return value instanceof Node ? this.#nameOf(value) : `(${this.#valueText(value)})`
  }

  #argumentsText(args: readonly Argument[], from: number, kwargs: Kwargs): string {
    let text = ''
    for (let i = from; i < args.length; i++) text += i === from ? this.#valueText(args[i]) : `, ${this.#valueText(args[i])}`
    const options = this.#objectText(kwargs)
    return options === '{}' ? text : text === '' ? options : `${text}, ${options}`
  }

  #objectText(value: Kwargs): string {
    const keys = Object.keys(value)
    return keys.length === 0 ? '{}' : `{ ${keys.map((k) => `${propertyKey(k)}: ${this.#valueText(value[k])}`).join(', ')} }`
  }

  #valueText(value: Argument): string {
    if (value instanceof Node) return this.#nameOf(value)
    const scalar = scalarLiteral(value)
    if (scalar !== null) return scalar
    if (isFunction(value)) return this.#globals.callee(value, targetInfo(value))
    if (Array.isArray(value)) return `[${value.map((v) => this.#valueText(v)).join(', ')}]`
    if (value instanceof Slice)
      return `new ${this.#globals.constant(Slice)}(${[value.start, value.stop, value.step].map((v) => this.#valueText(v)).join(', ')})`
    return isRecord(value) ? this.#objectText(value) : this.#globals.constant(value)
  }
}

/** Finds the nodes of lines that went through a transformer. Equal lines are matched in order. */
class LinePlaces {
  readonly #places = new Map<string, (Node | null)[]>()

  constructor(body: readonly string[], nodes: readonly (Node | null)[]) {
    for (const [i, line] of [...body.entries()].reverse()) {
      remembered(this.#places, line, () => []).push(nodes[i] ?? null)
    }
  }

  nodeOf(line: string): Node | null {
    return this.#places.get(line)?.pop() ?? null
  }
}
