// The oracle for signatures: reads the source of a function with acorn, a complete parser.
import { parseExpressionAt } from 'acorn'
import type { ArrowFunctionExpression, Expression, FunctionExpression, Node as Syntax, ObjectPattern, Pattern } from 'acorn'
import type { Parameter, Property, Signature } from '../../../src/fx/trace/parameters.ts'

/** The signature in the source of a function; null if acorn cannot read it as a function. */
export function oracle(source: string): Signature | null {
  const parsed = parseFunction(source)
  if (parsed === null) return null
  return {
    parameters: parsed.params.map((pattern, i) => parameterOf(pattern, i, parsed)),
    readsArguments: parsed.params.length === 0 && parsed.type === 'FunctionExpression' && mentionsArguments(parsed.body),
  }
}

/** Whether a body uses `arguments`. Inner functions have their own, except arrow functions. */
function mentionsArguments(node: Syntax): boolean {
  if (node.type === 'Identifier') return (node as Syntax & { name: string }).name === 'arguments'
  if (node.type === 'FunctionExpression' || node.type === 'FunctionDeclaration') return false
  return Object.entries(node).some(([key, child]) =>
    (Array.isArray(child) ? child : [child]).some(
      (item) => isSyntax(item) && !(item.type === 'Identifier' && isName(node, key)) && mentionsArguments(item),
    ),
  )
}

const plain = (name: string): Parameter => ({ name, default: null, rest: false, elements: null, properties: null, hasHiddenDefault: false })

function parseFunction(source: string): FunctionExpression | ArrowFunctionExpression | null {
  // Functions and arrow functions are expressions; methods only parse inside an object.
  for (const [text, method] of [
    [`(${source})`, false],
    [`({${source}})`, true],
  ] as const) {
    try {
      const expression = parseExpressionAt(text, 0, { ecmaVersion: 'latest', checkPrivateFields: false, allowSuperOutsideMethod: true })
      if (!method && (expression.type === 'FunctionExpression' || expression.type === 'ArrowFunctionExpression')) return expression
      if (method && expression.type === 'ObjectExpression') {
        const [property] = expression.properties
        if (property?.type === 'Property' && property.value.type === 'FunctionExpression') return property.value
      }
    } catch {
      // Not this form.
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
    if (inner.properties === null) return { ...inner, default: known(value) }
    // `{ scale = 2 } = {}`: the properties have their own defaults.
    if (value !== null && isEmptyObject(value[0])) return inner
    return { ...inner, default: known(value), properties: null, hasHiddenDefault: hasDefault(pattern.left) }
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

/** The properties that a pattern names; null if it takes others as well. */
function propertiesOf(pattern: ObjectPattern): readonly Property[] | null {
  const properties: Property[] = []
  for (const property of pattern.properties) {
    if (property.type !== 'Property' || property.computed || property.key.type !== 'Identifier') return null
    const { value } = property
    properties.push({ name: property.key.name, default: value.type === 'AssignmentPattern' ? known(constantOf(value.right)) : null })
  }
  return properties
}

/** A constant as signatures have it. */
const known = (constant: [unknown] | null): Parameter['default'] => (constant === null ? null : { value: constant[0] })

/** The value of an expression of literals, arrays and objects; null for any other expression. */
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
      return expression.operator === '-' ? [-(value[0] as number)] : expression.operator === '!' ? [!value[0]] : null
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

/** The number of leading elements of the array `name` that a body reads; null if it does anything else with it. */
function elementsRead(name: string, body: Syntax): number | null {
  let count = 0
  let onlyElements = true
  const visit = (node: Syntax, parent: Syntax | null, key: string): void => {
    if (node.type === 'Identifier' && (node as Syntax & { name: string }).name === name) {
      // Generated code releases an input with `rest = null`.
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

/** Whether an identifier is the name of a property, not a variable. */
function isName(parent: Syntax, key: string): boolean {
  const { computed, shorthand } = parent as Syntax & { computed?: boolean; shorthand?: boolean }
  return (
    (parent.type === 'MemberExpression' && key === 'property' && computed !== true) ||
    (parent.type === 'Property' && key === 'key' && computed !== true && shorthand !== true)
  )
}

/** The index that `rest[2]` or `operator.getitem(rest, 2)` reads; null for any other use. */
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
