// A model that was written before, from which pages are made without a compiler.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ArgumentError } from '../errors/index.ts'
import { isObject } from '../protocol/index.ts'
import { readJson } from './json.ts'
import type { Model } from './model.ts'
import { hashOf, normalized } from './read/index.ts'
import type { ReadModel } from './read/index.ts'

const isModel = (value: unknown): value is Model =>
  isObject(value) &&
  Reflect.get(value, 'schema') === 1 &&
  ['modules', 'symbols', 'calls'].every((name) => Array.isArray(Reflect.get(value, name))) &&
  ['name', 'description', 'generator'].every((name) => typeof Reflect.get(value, name) === 'string')

/** Reads a model.json. Throws ArgumentError if the file is not one. */
export function savedModel(file: string): Model {
  if (!existsSync(file)) throw new ArgumentError(`--from: there is no file ${file}.`)
  const read = readJson(file, '--from')
  if (!isModel(read)) throw new ArgumentError(`--from: ${file} is not a model.json of 'tensorfx docs' with schema 1. Write one with 'tensorfx docs'.`)
  return read
}

/** A model with the texts of its modules from a folder. Throws ArgumentError where one is missing or is no longer what the model was read from. */
export function withSources(model: Model, folder: string): ReadModel {
  const sources = new Map<string, string>()
  const other: string[] = []
  for (const { path, hash } of model.modules) {
    const file = join(folder, path)
    const text = existsSync(file) ? normalized(readFileSync(file, 'utf8')) : null
    if (text !== null && hashOf(text) === hash) sources.set(path, text)
    else other.push(path)
  }
  if (other.length > 0)
    throw new ArgumentError(
      `--from: ${other.length} of ${model.modules.length} sources in ${folder} are not those of the model, the first is ${other[0]}. Name the folder with the sources of the model, or give their address with --source-url.`,
    )
  return { model, sources }
}
