// rewriteSource: replaces what JavaScript hides from a tracer (conditions, `===`, `&&`, `typeof`) by calls that a tracer sees; runtime.ts has these calls. Lines stay
// where they are.
import MagicString from 'magic-string'
import { checkOptions, checkString } from '../protocol/index.ts'
import { namesOf } from './names.ts'
import { ABSENT, defaultsOfStatement, takesAbsent } from './patterns.ts'
import { bare, parseModule, walk } from './syntax.ts'
import type { AnyNode, AssignmentExpression, MemberExpression, Program } from './syntax.ts'

/** Options of {@link rewriteSource}. */
export interface RewriteOptions {
  /** Where the rewritten module imports the calls from. Default `'tensorfx/rewriter/runtime'`; null for no import. */
  readonly runtime?: string | null
  /** The name of the file, for errors and the source map. */
  readonly file?: string
}

/** A rewritten module. */
export interface Rewritten {
  readonly code: string
  /** Maps its columns to those of the original; lines are the same. */
  readonly map: { toString(): string; toUrl(): string }
}

/** The name under which rewritten code has the calls. */
export const RUNTIME = '__tensorfx'

/** Calls whose arguments may be traced values: what is called, the global that it belongs to, and what to call instead. */
const CALLS: ReadonlyMap<string, readonly [global: string, name: string]> = new Map([
  ['console.assert', ['console', 'assert']],
  ['Boolean', ['Boolean', 'bool']],
  ['Array.isArray', ['Array', 'isArray']],
  ['Object.is', ['Object', 'is']],
])

/** Methods that compare their argument with keys or elements. */
const LOOKUPS = new Set(['get', 'has', 'includes', 'indexOf', 'lastIndexOf'])

const EQUALITIES: Readonly<Record<string, string>> = { '===': 'same', '!==': 'differ', '==': 'equal', '!=': 'unequal' }

/** Operators whose results are booleans, also for traced values: JavaScript makes a number of these, which is refused. */
const PLAIN = new Set(['<', '>', '<=', '>=', 'in', 'instanceof'])

/**
 * Rewrites a module so that a tracer sees its conditions. Each becomes a call that asks the tracer (`fx.bool`), comparisons with `===` of traced values are recorded, and
 * `console.assert(c, m)` and `if (!c) throw new Error(m)` are recorded as `fx._assert(c, m)`. Where it asks whether a value is missing (`== null`, `??`, `?.`, a default in a
 * pattern), a traced value is there, and the graph asserts that. With plain values the module does the same as before. Returns null if there
 * is nothing to rewrite. Types must be removed first.
 *
 * @throws ArgumentError if the code is not valid JavaScript.
 */
export function rewriteSource(code: string, options: RewriteOptions = {}): Rewritten | null {
  checkString('rewriteSource', 'code', code)
  checkOptions('rewriteSource', options, { runtime: true, file: true })
  const { runtime = 'tensorfx/rewriter/runtime', file = 'the source' } = options
  if (code.includes(`${RUNTIME}.`)) return null
  const program = parseModule(code, file)
  const text = new MagicString(code)
  new Rewriter(code, text, namesOf(program).declared).run(program)
  if (!text.hasChanged()) return null
  if (runtime !== null) {
    const directive = program.body.findLast((statement) => statement.type === 'ExpressionStatement' && statement.directive !== undefined)
    const start = directive?.end ?? program.body[0]?.start ?? 0
    text.appendLeft(start, `${directive === undefined ? '' : ';'}import { runtime as ${RUNTIME} } from ${JSON.stringify(runtime)};`)
  }
  return { code: text.toString(), map: text.generateMap({ source: file, hires: true }) }
}

class Rewriter {
  readonly #code: string
  readonly #text: MagicString
  readonly #declared: ReadonlySet<string>

  constructor(code: string, text: MagicString, declared: ReadonlySet<string>) {
    this.#code = code
    this.#text = text
    this.#declared = declared
  }

  run(program: Program): void {
    walk(program, (node) => this.#visit(node))
  }

  /** Rewrites a node; returns the nodes below it that are done. */
  #visit(node: AnyNode): readonly AnyNode[] | void {
    switch (node.type) {
      case 'IfStatement':
        if (!this.#throws(node.test, node.consequent, node.alternate)) this.#condition(node.test)
        return
      case 'WhileStatement':
      case 'DoWhileStatement':
      case 'ConditionalExpression':
        this.#condition(node.test)
        return
      case 'ForStatement':
        if (node.test) this.#condition(node.test)
        return
      case 'UnaryExpression':
        if (node.operator === '!' && !this.#done.has(node)) this.#condition(node.argument)
        if (node.operator === 'typeof') return this.#typeof(node, node.argument)
        return
      case 'LogicalExpression':
        this.#logical(node, node.left, node.operator)
        return
      case 'BinaryExpression':
        this.#binary(node, node.left, node.operator, node.right)
        return
      case 'SwitchStatement':
        this.#wrap(node.discriminant, 'plain')
        return
      case 'CallExpression':
        if (node.optional && node.callee.type === 'Identifier') this.#wrap(node.callee, 'there')
        if (!node.optional && node.callee.type === 'MemberExpression') this.#lookup(node, node.callee, node.arguments)
        return this.#call(node.callee)
      case 'NewExpression':
        // The object of `new a.b()` cannot become a call.
        for (let callee: AnyNode = node.callee; callee.type === 'MemberExpression'; callee = callee.object) this.#done.add(callee)
        return
      case 'MemberExpression':
        this.#member(node, node.object, node.property)
        return
      case 'VariableDeclarator':
        if (node.init && takesAbsent(node.id)) this.#wrap(node.init, 'own')
        return
      case 'AssignmentExpression':
        return this.#assignment(node)
      case 'Program':
      case 'BlockStatement':
      case 'StaticBlock':
        this.#defaults(node.body)
        return
      case 'SwitchCase':
        this.#defaults(node.consequent)
        return
      default:
    }
  }

  /** Negations that a recorded assertion has replaced, and what must stay as it is. */
  readonly #done = new Set<AnyNode>()

  #wrap(node: AnyNode, name: string): void {
    this.#text.appendRight(node.start, `${RUNTIME}.${name}(`)
    this.#text.prependLeft(node.end, ')')
  }

  #condition(test: AnyNode): void {
    const inner = bare(test)
    if (inner.type === 'Literal' || (inner.type === 'UnaryExpression' && inner.operator === '!')) return
    if (inner.type === 'BinaryExpression' && PLAIN.has(inner.operator)) return
    this.#wrap(test, 'bool')
  }

  /** `if (!c) throw new Error(m)` asserts that c holds. */
  #throws(test: AnyNode, consequent: AnyNode, alternate: AnyNode | null | undefined): boolean {
    const not = bare(test)
    const [only] = consequent.type === 'BlockStatement' && consequent.body.length === 1 ? consequent.body : [consequent]
    if (alternate || not.type !== 'UnaryExpression' || not.operator !== '!' || only?.type !== 'ThrowStatement') return false
    const error = bare(only.argument)
    const [message, more] = error.type === 'NewExpression' ? error.arguments : []
    if (error.type !== 'NewExpression' || more !== undefined || message?.type === 'SpreadElement' || waits(error)) return false
    const made = message === undefined ? "''" : this.#code.slice(message.start, message.end)
    this.#text.update(not.start, not.start + 1, `${RUNTIME}.fails(`)
    this.#text.prependLeft(not.argument.end, `, () => (${made.replaceAll('\n', ' ')}))`)
    this.#done.add(not)
    return true
  }

  #typeof(node: AnyNode, argument: AnyNode): readonly AnyNode[] {
    const inner = bare(argument)
    if (inner.type !== 'Identifier') {
      this.#text.update(node.start, argument.start, `${RUNTIME}.typeOf(`)
      this.#text.prependLeft(argument.end, ')')
      return []
    }
    // A name that does not exist may stand behind typeof, but nowhere else.
    const value = this.#declared.has(inner.name) ? inner.name : `typeof ${inner.name} === 'undefined' ? undefined : ${inner.name}`
    this.#text.update(node.start, node.end, `${RUNTIME}.typeOf(${value})`)
    return [argument]
  }

  /** `a && b` becomes `value(test(a) ? b : left)`, where left is the value of a; `await` and `yield` in b stay in their function. */
  #logical(node: AnyNode, left: AnyNode, operator: string): void {
    if (operator === '??') return this.#wrap(left, 'there')
    const at = this.#operatorAt(left.end, operator)
    this.#text.appendRight(node.start, `${RUNTIME}.value(${RUNTIME}.test(`)
    this.#text.update(at, at + 2, operator === '&&' ? ') ?' : `) ? ${RUNTIME}.left :`)
    this.#text.prependLeft(node.end, operator === '&&' ? ` : ${RUNTIME}.left)` : ')')
  }

  #binary(node: AnyNode, left: AnyNode, operator: string, right: AnyNode): void {
    const name = operator === 'instanceof' ? 'instanceOf' : EQUALITIES[operator]
    if (name === undefined) return
    const [first, second] = [left, right].map((side) => isNothing(bare(side)))
    if (first === true || second === true) {
      const other = first === true ? right : left
      if (name !== 'instanceOf' && first !== second && bare(other).type !== 'Literal') this.#wrap(other, 'there')
      return
    }
    const at = this.#operatorAt(left.end, operator)
    this.#text.appendRight(node.start, `${RUNTIME}.${name}(`)
    this.#text.update(at, at + operator.length, ',')
    this.#text.prependLeft(node.end, ')')
  }

  #call(callee: AnyNode): readonly AnyNode[] {
    const found = CALLS.get(this.#code.slice(callee.start, callee.end))
    if (found === undefined || this.#declared.has(found[0])) return []
    this.#text.update(callee.start, callee.end, `${RUNTIME}.${found[1]}`)
    return [callee]
  }

  /** `map.get(key)` becomes `lookup(map, "get", key)`, which knows the keys. */
  #lookup(node: AnyNode, callee: MemberExpression, args: readonly AnyNode[]): void {
    const { object, property } = callee
    const [first] = args
    if (callee.computed || property.type !== 'Identifier' || !LOOKUPS.has(property.name) || first === undefined || !isComplete(object)) return
    this.#text.appendRight(node.start, `${RUNTIME}.lookup(`)
    this.#text.update(object.end, first.start, `, "${property.name}", ${this.#breaks(object.end, first.start)}`)
  }

  /** `a?.b` asks whether a is there; `a.then` reads what a traced value does not have. */
  #member(node: MemberExpression, object: AnyNode, property: AnyNode): void {
    if (node.optional) this.#wrap(object, 'there')
    const isAbsent = !node.computed && property.type === 'Identifier' && ABSENT.has(property.name)
    if (isAbsent && !this.#done.has(node) && object.type !== 'ThisExpression' && isComplete(object)) this.#wrap(object, 'own')
  }

  #assignment(node: AssignmentExpression): readonly AnyNode[] {
    const { left, operator, right } = node
    if (operator === '=') {
      if (takesAbsent(left)) this.#wrap(right, 'own')
      if (left.type === 'MemberExpression' && isSimple(left.object)) {
        this.#text.appendRight(right.start, `${RUNTIME}.stored(${this.#textOf(left.object)}, `)
        this.#text.prependLeft(right.end, ')')
      }
      return []
    }
    if (operator !== '??=' && operator !== '||=' && operator !== '&&=') return []
    if (left.type !== 'Identifier' && !(left.type === 'MemberExpression' && !left.computed && isSimple(left.object))) return []
    // `a ||= b` becomes `value(test(a) ? left : (a = b))`.
    const target = this.#textOf(left)
    const at = this.#operatorAt(left.end, operator)
    const [test, then, end] =
      operator === '??=' ? ['there', '??', '))'] : operator === '||=' ? ['test', `? ${RUNTIME}.left :`, '))'] : ['test', '?', `) : ${RUNTIME}.left)`]
    this.#text.update(left.start, left.end, `${RUNTIME}.value(${RUNTIME}.${test}(${target})`)
    this.#text.update(at, at + operator.length, `${then} (${target} =`)
    this.#text.prependLeft(node.end, end)
    return [left]
  }

  /** Behind a statement whose pattern has defaults, tells which names have got values. */
  #defaults(statements: readonly AnyNode[]): void {
    for (const statement of statements) {
      const names = defaultsOfStatement(statement)
      if (names.length > 0) this.#text.appendLeft(statement.end, `;${RUNTIME}.given(${names.join(', ')});`)
    }
  }

  #textOf(node: AnyNode): string {
    return this.#code.slice(node.start, node.end).replaceAll('\n', ' ')
  }

  /** The line breaks of a part, which must stay. */
  #breaks(start: number, end: number): string {
    return this.#code.slice(start, end).replaceAll(/[^\n]/g, '')
  }

  /** Where an operator stands; only spaces and comments are before it. */
  #operatorAt(from: number, operator: string): number {
    let at = from
    while (!this.#code.startsWith(operator, at)) {
      if (this.#code.startsWith('/*', at)) at = this.#code.indexOf('*/', at) + 2
      else if (this.#code.startsWith('//', at)) at = this.#code.indexOf('\n', at) + 1
      else at++
    }
    return at
  }
}

/** Whether it costs nothing and has no effect to read an expression twice. */
const isSimple = (node: AnyNode): boolean => node.type === 'Identifier' || node.type === 'ThisExpression'

/** Whether an expression can stand alone: `super` cannot, nor what `?.` leaves out together with what follows. */
function isComplete(node: AnyNode): boolean {
  if (node.type === 'Super') return false
  if (node.type !== 'MemberExpression' && node.type !== 'CallExpression') return true
  return !node.optional && isComplete(node.type === 'MemberExpression' ? node.object : node.callee)
}

/** Whether an operand is null or undefined, which a traced value never is. */
const isNothing = (node: AnyNode): boolean =>
  (node.type === 'Literal' && node.raw === 'null') || (node.type === 'Identifier' && node.name === 'undefined')

/** Whether an expression waits for something, so that it cannot be moved into another function. */
function waits(root: AnyNode): boolean {
  let found = false
  walk(root, (node) => {
    if (node.type === 'AwaitExpression' || node.type === 'YieldExpression') found = true
  })
  return found
}
