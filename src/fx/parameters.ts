// The parameters of a function, read from its source: names, defaults, patterns. JavaScript has no other way to them.
import { parseExpressionAt } from 'acorn'
import type { ArrowFunctionExpression, Expression, FunctionExpression, Node as Syntax, ObjectPattern, Pattern } from 'acorn'

/** A parameter of a function. */
export interface Parameter {
  /** Its name; `arg0` for a pattern. */
  readonly name: string
  /** Its default where the source tells it without running anything; `[]` for none, or one that cannot be told. */
  readonly default: readonly [unknown?]
  /** For `...rest`. */
  readonly rest: boolean
  /** For `...rest`: one more than the highest index, when the function only ever reads single elements (`rest[1]`); null otherwise. */
  readonly elements: number | null
  /** For a pattern of properties, `{ scale = 2, bias }`: those. null for anything else. */
  readonly properties: readonly Property[] | null
  /** A pattern inside has a default, `([a, b = 1])`, which a traced value never uses. */
  readonly hasHiddenDefault: boolean
}

/** A property that a parameter's pattern takes apart. */
export interface Property {
  readonly name: string
  readonly default: readonly [unknown?]
}

/** What a function's source tells of its inputs. */
export interface Signature {
  readonly parameters: readonly Parameter[]
  /** It declares no parameters, and reads `arguments`. */
  readonly readsArguments: boolean
}

type AnyFunction = (...args: never[]) => unknown

const cache = new WeakMap<AnyFunction, Signature>()
const sources = new WeakMap<AnyFunction, string>()

/** Says that a function stands for another, whose source this is: its parameters are those of `source`. */
export function standsFor<F extends AnyFunction>(fn: F, source: string): F {
  sources.set(fn, source)
  return fn
}

/** The signature of a function. One whose source is hidden (native, bound) has the parameters `arg0`, `arg1`, … */
export function signatureOf(fn: AnyFunction): Signature {
  let signature = cache.get(fn)
  if (signature === undefined) {
    const parsed = parseFunction(sources.get(fn) ?? String(fn))
    signature =
      parsed === null
        ? { parameters: Array.from({ length: fn.length }, (_, i) => plain(`arg${i}`)), readsArguments: false }
        : {
            parameters: parsed.params.map((pattern, i) => parameterOf(pattern, i, parsed)),
            readsArguments: parsed.params.length === 0 && parsed.type === 'FunctionExpression' && mentionsArguments(parsed.body),
          }
    cache.set(fn, signature)
  }
  return signature
}

/** Whether `arguments` stands in a function's body; functions inside that are no arrows have their own. */
function mentionsArguments(node: Syntax): boolean {
  if (node.type === 'Identifier') return (node as Syntax & { name: string }).name === 'arguments'
  if (node.type === 'FunctionExpression' || node.type === 'FunctionDeclaration') return false
  return Object.entries(node).some(([key, child]) =>
    (Array.isArray(child) ? child : [child]).some(
      (item) => isSyntax(item) && !(item.type === 'Identifier' && isName(node, key)) && mentionsArguments(item),
    ),
  )
}

const plain = (name: string): Parameter => ({ name, default: [], rest: false, elements: null, properties: null, hasHiddenDefault: false })

function parseFunction(source: string): FunctionExpression | ArrowFunctionExpression | null {
  // Methods (`forward(x) {…}`) only parse inside an object; functions and arrows as they are.
  for (const [text, method] of [
    [`(${source})`, false],
    [`({${source}})`, true],
  ] as const) {
    try {
      const expression = parseExpressionAt(text, 0, { ecmaVersion: 'latest', checkPrivateFields: false })
      if (!method && (expression.type === 'FunctionExpression' || expression.type === 'ArrowFunctionExpression')) return expression
      if (method && expression.type === 'ObjectExpression') {
        const [property] = expression.properties
        if (property?.type === 'Property' && property.value.type === 'FunctionExpression') return property.value
      }
    } catch {
      // Not of this form.
    }
  }
  return null
}

function parameterOf(pattern: Pattern, index: number, fn: FunctionExpression | ArrowFunctionExpression): Parameter {
  if (pattern.type === 'Identifier') return plain(pattern.name)
  if (pattern.type === 'RestElement') return restOf(pattern.argument, index, fn)
  if (pattern.type === 'AssignmentPattern') {
    const inner = parameterOf(pattern.left, index, fn)
    const value = constantOf(pattern.right)
    if (inner.properties === null) return { ...inner, default: value ?? [] }
    // `{ scale = 2 } = {}`: each property has a default of its own, and the empty object none of them.
    if (value !== null && isEmptyObject(value[0])) return inner
    return { ...inner, default: value ?? [], properties: null, hasHiddenDefault: hasDefault(pattern.left) }
  }
  if (pattern.type === 'ObjectPattern') {
    const properties = propertiesOf(pattern)
    const values = pattern.properties.map((p) => (p.type === 'Property' ? p.value : p.argument))
    const inside = properties === null ? [pattern] : values.map((v) => (v.type === 'AssignmentPattern' ? v.left : v))
    return { ...plain(`arg${index}`), properties, hasHiddenDefault: inside.some(hasDefault) }
  }
  return { ...plain(`arg${index}`), hasHiddenDefault: hasDefault(pattern) }
}

/** Whether a pattern, or one inside it, has a default. */
function hasDefault(pattern: Pattern): boolean {
  switch (pattern.type) {
    case 'AssignmentPattern':
      return true
    case 'ArrayPattern':
      return pattern.elements.some((e) => e !== null && hasDefault(e))
    case 'ObjectPattern':
      return pattern.properties.some((p) => hasDefault(p.type === 'Property' ? p.value : p.argument))
    case 'RestElement':
      return hasDefault(pattern.argument)
    default:
      return false
  }
}

const isEmptyObject = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && Object.keys(value).length === 0

/** The properties that a pattern names; null when it takes others as well. */
function propertiesOf(pattern: ObjectPattern): readonly Property[] | null {
  const properties: Property[] = []
  for (const property of pattern.properties) {
    if (property.type !== 'Property' || property.computed || property.key.type !== 'Identifier') return null
    const { value } = property
    properties.push({ name: property.key.name, default: value.type === 'AssignmentPattern' ? (constantOf(value.right) ?? []) : [] })
  }
  return properties
}

/** The value of an expression that is written down: literals, and arrays and objects of them. null for anything else. */
function constantOf(expression: Expression): [unknown] | null {
  switch (expression.type) {
    case 'Literal':
      return 'regex' in expression && expression.regex !== undefined && expression.regex !== null ? null : [expression.value]
    case 'TemplateLiteral':
      return expression.expressions.length === 0 ? [expression.quasis[0]?.value.cooked] : null
    case 'Identifier':
      return expression.name === 'undefined' ? [undefined] : expression.name === 'Infinity' ? [Infinity] : expression.name === 'NaN' ? [NaN] : null
    case 'UnaryExpression': {
      const value = constantOf(expression.argument)
      if (value === null) return null
      return expression.operator === '-' ? [-(value[0] as number)] : expression.operator === '!' ? [!(value[0] as boolean)] : null
    }
    case 'ArrayExpression': {
      const items = expression.elements.map((e) => (e === null || e.type === 'SpreadElement' ? null : constantOf(e)))
      return items.includes(null) ? null : [items.map((item) => item?.[0])]
    }
    case 'ObjectExpression': {
      const made: Record<string, unknown> = {}
      for (const property of expression.properties) {
        if (property.type !== 'Property' || property.computed || property.kind !== 'init' || property.key.type !== 'Identifier') return null
        const value = constantOf(property.value)
        if (value === null) return null
        made[property.key.name] = value[0]
      }
      return [made]
    }
    default:
      return null
  }
}

function restOf(pattern: Pattern, index: number, fn: FunctionExpression | ArrowFunctionExpression): Parameter {
  if (pattern.type === 'ArrayPattern') {
    const known = pattern.elements.every((e) => e === null || e.type !== 'RestElement')
    return { ...plain(`arg${index}`), rest: true, elements: known ? pattern.elements.length : null }
  }
  if (pattern.type !== 'Identifier') return { ...plain(`arg${index}`), rest: true }
  return { ...plain(pattern.name), rest: true, elements: elementsRead(pattern.name, fn.body) }
}

/** How many leading elements of the array `name` a function body reads, when it does nothing else with it; null otherwise. */
function elementsRead(name: string, body: Syntax): number | null {
  let count = 0
  let onlyElements = true
  const visit = (node: Syntax, parent: Syntax | null, key: string): void => {
    if (node.type === 'Identifier' && (node as Syntax & { name: string }).name === name) {
      // `rest = null` is how generated code releases it.
      if (parent !== null && (isName(parent, key) || (parent.type === 'AssignmentExpression' && key === 'left'))) return
      const index = parent === null ? null : indexIn(parent, node)
      if (index === null) onlyElements = false
      else count = Math.max(count, index + 1)
      return
    }
    for (const [childKey, child] of Object.entries(node)) {
      for (const item of Array.isArray(child) ? child : [child]) if (isSyntax(item)) visit(item, node, childKey)
    }
  }
  visit(body, null, '')
  return onlyElements ? count : null
}

const isSyntax = (value: unknown): value is Syntax => typeof value === 'object' && value !== null && typeof (value as Syntax).type === 'string'

/** Whether an identifier at this place is a property's name and no variable. */
function isName(parent: Syntax, key: string): boolean {
  const { computed, shorthand } = parent as Syntax & { computed?: boolean; shorthand?: boolean }
  return (
    (parent.type === 'MemberExpression' && key === 'property' && computed !== true) ||
    (parent.type === 'Property' && key === 'key' && computed !== true && shorthand !== true)
  )
}

/** The index when the identifier is read as `rest[2]`, or as generated code does, `operator.getitem(rest, 2)`. */
function indexIn(parent: Syntax, identifier: Syntax): number | null {
  const { object, property, computed } = parent as Syntax & { object?: Syntax; property?: Syntax; computed?: boolean }
  if (parent.type === 'MemberExpression' && object === identifier && computed === true && property !== undefined) return wholeNumber(property)
  if (parent.type !== 'CallExpression') return null
  const { callee, arguments: args } = parent as Syntax & { callee: Syntax; arguments: readonly Syntax[] }
  const called = callee as Syntax & { object?: { name?: string }; property?: { name?: string } }
  const isGetitem = called.object?.name === 'operator' && called.property?.name === 'getitem'
  return isGetitem && args[0] === identifier && args[1] !== undefined ? wholeNumber(args[1]) : null
}

function wholeNumber(node: Syntax): number | null {
  const { value } = node as Syntax & { value?: unknown }
  return node.type === 'Literal' && typeof value === 'number' && Number.isInteger(value) && value >= 0 ? value : null
}
