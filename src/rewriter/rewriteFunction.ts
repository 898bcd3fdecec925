// rewriteFunction: a function whose conditions a tracer sees, made from the function's own source. Its free names come from `scope`, because a source has no closure.
import { ArgumentError } from '../errors/index.ts'
import { checkCallable, isFunction } from '../protocol/index.ts'
import { standsFor } from '../fx/trace/parameters.ts'
import { namesOf } from './names.ts'
import { RUNTIME, rewriteSource } from './rewriteSource.ts'
import { runtime } from './runtime.ts'
import { bare, parseModule } from './syntax.ts'

/** Any function. */
export type AnyFunction = (this: unknown, ...args: never[]) => unknown

/**
 * Rewrites a function as {@link rewriteSource} does; see {@link RewritingTracer}. A function whose file was rewritten is returned as it is. `superclass` is the prototype that `super` refers to in a
 * method.
 *
 * @throws ArgumentError if the source is hidden, uses names that `scope` lacks, assigns names outside, or uses private names of its class.
 */
export function rewriteFunction<F extends AnyFunction>(fn: F, scope: Readonly<Record<string, unknown>> = {}, superclass: object | null = null): F {
  checkCallable('rewriteFunction', 'fn', fn)
  const source = Function.prototype.toString.call(fn)
  const name = fn.name === '' ? 'the function' : fn.name
  if (source.includes(`${RUNTIME}.`)) return fn
  if (/\{\s*\[native code\]\s*\}$/.test(source))
    throw new ArgumentError(`${name} cannot be rewritten, because its source is hidden; rewrite the function that it calls.`)
  const expression = expressionOf(source, name)
  const program = parseModule(expression, name)
  const { free, assigned, hasPrivate } = namesOf(program)
  if (hasPrivate) throw new ArgumentError(`${name} cannot be rewritten, because it uses private names of its class. ${AS_LOADED}`)
  const missing = [...free].filter((known) => known !== SUPER && !Object.hasOwn(scope, known) && !(known in globalThis))
  if (missing.length > 0)
    throw new ArgumentError(
      `${name} uses ${missing.join(', ')} from outside, which its source does not tell: pass ${missing.length === 1 ? 'it' : 'them'} as scope, new RewritingTracer({ scope: { ${missing.join(', ')} } }). ${AS_LOADED}`,
    )
  const written = [...assigned].filter((known) => Object.hasOwn(scope, known))
  if (written.length > 0)
    throw new ArgumentError(`${name} assigns ${written.join(', ')} outside of it, which a copy of its source cannot. ${AS_LOADED}`)
  const rewritten = rewriteSource(expression, { runtime: null, file: name })
  if (rewritten === null) return fn
  const made: unknown = evaluate(rewritten.code, { ...scope, [RUNTIME]: runtime, [SUPER]: superclass })
  if (!isSame<F>(made)) throw new ArgumentError(`${name} cannot be rewritten, because its source is not that of a function.`)
  return standsFor(made, source)
}

const AS_LOADED = 'Or rewrite files as they are loaded, where closures stay: node --import tensorfx/register, or a plugin of tensorfx/rewriter.'

const SUPER = '__tensorfx_super'

const isSame = <F extends AnyFunction>(value: unknown): value is F => isFunction(value)

/** The source of a function as an expression. That of a method is only valid in an object. */
function expressionOf(source: string, name: string): string {
  if (isExpression(source)) return `(${source}\n)`
  const method = `({ ${source}\n})`
  const [statement] = parseModule(method, name).body
  const object = statement?.type === 'ExpressionStatement' ? bare(statement.expression) : undefined
  const property = object?.type === 'ObjectExpression' ? object.properties[0] : undefined
  if (property?.type !== 'Property' || property.computed || property.key.type !== 'Identifier')
    throw new ArgumentError(`${name} cannot be rewritten, because it is a method whose name is computed or private. ${AS_LOADED}`)
  return `(function () { const home = ${method}; Object.setPrototypeOf(home, ${SUPER}); return home.${property.key.name} })()`
}

function isExpression(source: string): boolean {
  try {
    parseModule(`(${source}\n)`, 'the function')
    return true
  } catch {
    return false
  }
}

/** The value of an expression that sees only these names, and globals. */
function evaluate(expression: string, scope: Readonly<Record<string, unknown>>): unknown {
  const names = Object.keys(scope)
  // oxlint-disable-next-line no-eval -- compiling rewritten code is the purpose of this file
  const make: (...values: readonly unknown[]) => unknown = (0, eval)(`(function (${names.join(', ')}) { 'use strict'; return ${expression}\n})`)
  return make(...names.map((name) => scope[name]))
}
