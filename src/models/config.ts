// Reads the config.json of a checkpoint, which comes from outside: each value is checked where it is read, under the name that the file has for it.
import { ArgumentError } from '../errors/index.ts'
import { isPlainObject, snakeCase, valueText } from '../protocol/index.ts'

/** What a config.json holds, or an object with the same keys. */
export type ConfigJson = Readonly<Record<string, unknown>>

const isNumber = (value: unknown): value is number => typeof value === 'number' && Number.isFinite(value)
const isCount = (value: unknown): value is number => isNumber(value) && Number.isSafeInteger(value) && value > 0

/** Reads values of a config by the names in the file. */
export class ConfigReader {
  readonly #json: ConfigJson
  readonly #path: string

  constructor(json: ConfigJson, path = '') {
    this.#json = json
    this.#path = path
  }

  #fail(key: string, expected: string, value: unknown): never {
    throw new ArgumentError(`config.json: '${this.#path}${key}' must be ${expected}, got ${valueText(value)}.`)
  }

  #read<T>(key: string, fallback: T | undefined, expected: string, is: (value: unknown) => value is T): T {
    const value = Object.hasOwn(this.#json, key) ? this.#json[key] : undefined
    if (is(value)) return value
    if ((value === undefined || value === null) && fallback !== undefined) return fallback
    return this.#fail(key, expected, value)
  }

  /** A positive integer. */
  count(key: string, fallback?: number): number {
    return this.#read(key, fallback, 'a positive integer', isCount)
  }

  /** A finite number. */
  number(key: string, fallback?: number): number {
    return this.#read(key, fallback, 'a number', isNumber)
  }

  /** True or false. */
  flag(key: string, fallback: boolean): boolean {
    return this.#read(key, fallback, 'true or false', (value) => typeof value === 'boolean')
  }

  /** One of some texts. */
  choice<const T extends string>(key: string, choices: readonly T[], fallback: T): T {
    const expected = choices.map((choice) => `'${choice}'`).join(' or ')
    return this.#read(key, fallback, expected, (value): value is T => choices.some((choice) => choice === value))
  }

  /** Positive integers. */
  counts(key: string, fallback?: readonly number[]): readonly number[] {
    const isCounts = (value: unknown): value is readonly number[] => Array.isArray(value) && value.length > 0 && value.every(isCount)
    return this.#read(key, fallback, 'a list of positive integers', isCounts)
  }

  /** Objects, each as a reader. */
  list(key: string): readonly ConfigReader[] {
    const isList = (value: unknown): value is readonly ConfigJson[] => Array.isArray(value) && value.length > 0 && value.every(isPlainObject)
    return this.#read(key, undefined, 'a list of objects', isList).map((json, i) => new ConfigReader(json, `${this.#path}${key}[${i}].`))
  }

  /** An object within; null if there is none. */
  part(key: string): ConfigReader | null {
    const value = this.#json[key]
    if (value === undefined || value === null) return null
    return isPlainObject(value) ? new ConfigReader(value, `${this.#path}${key}.`) : this.#fail(key, 'an object', value)
  }

  /** The names of classes by their numbers, `id2label`; null if there are none. */
  labels(): Readonly<Record<string, string>> | null {
    const isLabels = (value: unknown): value is Readonly<Record<string, string>> =>
      isPlainObject(value) && Object.values(value).every((label) => typeof label === 'string')
    return this.#read<Readonly<Record<string, string>> | null>('id2label', null, 'names by numbers', isLabels)
  }

  /** How many classes a head has: `num_labels`, or the length of `id2label`; 2 as in Hugging Face's files that name neither. */
  classes(): number {
    const labels = this.#json['id2label']
    return this.count('num_labels', this.count('num_classes', isPlainObject(labels) ? Math.max(1, Object.keys(labels).length) : 2))
  }
}

/** A config as config.json has it: `nEmbd` is `n_embd`. */
export function configJson(modelType: string, config: object): ConfigJson {
  const spelled = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(spelled)
    if (!isPlainObject(value)) return value
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [snakeCase(key), spelled(item)]))
  }
  return { model_type: modelType, ...Object(spelled(config)) }
}
