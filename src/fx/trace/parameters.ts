// The signature of a function: its parameters, read from its source, because JavaScript offers no other way to get their names.
import { remembered } from '../../protocol/index.ts'
import { elementsRead, readsArguments, testedVariables } from './source/functionBody.ts'
import type { KnownValue } from './source/literals.ts'
import { parseFunction } from './source/parameterList.ts'
import type { Binding, FunctionSource, Pattern, PropertyBinding } from './source/parameterList.ts'

/** A parameter of a function. */
export interface Parameter {
  /** Its name; `arg0`, `arg1`, … (by position) for a pattern. */
  readonly name: string
  /** The value of its default; null if it has none, or if that is not a literal. */
  readonly default: KnownValue | null
  /** Whether it is `...rest`. */
  readonly rest: boolean
  /** For `...rest`: the highest index that the function reads, plus one, if it only reads single elements (`rest[1]`). Otherwise null. */
  readonly elements: number | null
  /** The properties of a pattern such as `{ scale = 2, bias }`; null for anything else. */
  readonly properties: readonly Property[] | null
  /** Whether a nested pattern has a default, `([a, b = 1])`, which a traced value never uses. */
  readonly hasHiddenDefault: boolean
}

/** A property of a pattern. */
export interface Property {
  readonly name: string
  /** The value of its default; null if it has none, or if that is not a literal. */
  readonly default: KnownValue | null
}

/** The inputs of a function, as far as its source tells. */
export interface Signature {
  readonly parameters: readonly Parameter[]
  /** Whether it declares no parameters but reads `arguments`. */
  readonly readsArguments: boolean
}

type AnyFunction = (...args: never[]) => unknown

const cache = new WeakMap<AnyFunction, Signature>()
const sources = new WeakMap<AnyFunction, string>()

/** Makes {@link signatureOf} read the parameters of `fn` from this source instead of its own. */
export function standsFor<F extends AnyFunction>(fn: F, source: string): F {
  sources.set(fn, source)
  return fn
}

/** The signature of a function. If its source is hidden (native, bound), the parameters are `arg0`, `arg1`, … */
export function signatureOf(fn: AnyFunction): Signature {
  return remembered(
    cache,
    fn,
    () =>
      signatureFrom(sources.get(fn) ?? String(fn)) ?? {
        parameters: Array.from({ length: fn.length }, (_, i) => plain(`arg${i}`)),
        readsArguments: false,
      },
  )
}

/** The signature in the source of a function; null if the source is hidden, or not that of a function. */
export function signatureFrom(source: string): Signature | null {
  const fn = parseFunction(source)
  if (fn === null) return null
  const parameters = fn.parameters.map((binding, i) => parameterOf(binding, i, fn))
  return { parameters, readsArguments: parameters.length === 0 && !fn.isArrow && readsArguments(fn.body) }
}

const tested = new WeakMap<AnyFunction, readonly (string | null)[]>()

/** For each parameter, its name if the function uses it as a condition by itself (`if (flag)`); null if not, or if the source is hidden. */
export function testedParameters(fn: AnyFunction): readonly (string | null)[] {
  return remembered(tested, fn, () => {
    const source = parseFunction(sources.get(fn) ?? String(fn))
    if (source === null) return []
    const names = source.parameters.map(({ pattern, isRest }) => (pattern.kind === 'name' && !isRest ? pattern.name : null))
    const found = testedVariables(
      names.filter((name) => name !== null),
      source.body,
    )
    return names.map((name) => (name !== null && found.includes(name) ? name : null))
  })
}

const plain = (name: string): Parameter => ({ name, default: null, rest: false, elements: null, properties: null, hasHiddenDefault: false })

function parameterOf(binding: Binding, index: number, fn: FunctionSource): Parameter {
  const { pattern } = binding
  const parameter = plain(pattern.kind === 'name' ? pattern.name : `arg${index}`)
  if (binding.isRest) return { ...parameter, rest: true, elements: elementsOf(pattern, fn) }
  const options = optionsOf(binding)
  return options === null
    ? { ...parameter, default: binding.default, hasHiddenDefault: hasDefaultInside(pattern) }
    : { ...parameter, properties: options.map(propertyOf), hasHiddenDefault: options.some(({ pattern: inner }) => hasDefaultInside(inner)) }
}

/** The properties of a parameter that is an options object, `{ scale = 2, bias } = {}`; null for any other parameter. */
function optionsOf({ pattern, hasDefault, default: known }: Binding): readonly NamedProperty[] | null {
  if (pattern.kind !== 'record' || !pattern.properties.every(isNamed)) return null
  // The properties have defaults of their own, which an empty object leaves as they are.
  return !hasDefault || isEmptyObject(known?.value) ? pattern.properties : null
}

type NamedProperty = PropertyBinding & { readonly key: string }

const isNamed = (property: PropertyBinding): property is NamedProperty => property.key !== null

const propertyOf = ({ key, default: known }: NamedProperty): Property => ({ name: key, default: known })

/** The number of elements of a rest parameter, if it is known. */
function elementsOf(pattern: Pattern, fn: FunctionSource): number | null {
  if (pattern.kind === 'name') return elementsRead(pattern.name, fn.body)
  return pattern.kind === 'list' && pattern.elements.every((element) => element?.isRest !== true) ? pattern.elements.length : null
}

/** Whether a pattern contains a default. */
function hasDefaultInside(pattern: Pattern): boolean {
  const bindings = pattern.kind === 'list' ? pattern.elements : pattern.kind === 'record' ? pattern.properties : []
  return bindings.some((binding) => binding !== null && (binding.hasDefault || hasDefaultInside(binding.pattern)))
}

const isEmptyObject = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && Object.keys(value).length === 0
