// The part of a program that users of its package see.
import type { Model } from './model.ts'

/** A model with public names alone, and with the modules that declare or export them. */
export function publicPart({ schema, generator, name, description, modules, symbols, calls }: Model): Model {
  const seen = symbols.filter(({ visibility }) => visibility === 'public')
  const ids = new Set(seen.map(({ id }) => id))
  const declaring = new Set(seen.map(({ module }) => module))
  const kept = modules.filter(({ path, entries }) => entries.length > 0 || declaring.has(path))
  const paths = new Set(kept.map(({ path }) => path))
  return {
    ...{ schema, generator, name, description },
    modules: kept.map((module) => ({
      ...module,
      imports: module.imports.filter(({ from, isPackage }) => isPackage || paths.has(from)),
      importers: module.importers.filter(({ path }) => paths.has(path)),
      exports: module.exports.filter(({ symbol }) => symbol === null || ids.has(symbol)),
    })),
    symbols: seen.map((symbol) => ({ ...symbol, heritage: symbol.heritage.filter((id) => ids.has(id)) })),
    calls: calls.filter(({ from, to, kind }) => ids.has(from) && (kind === 'dynamic' || ids.has(to))),
  }
}
