// Reads what PyTorch says about dtypes (test/goldens/dtypes): promotion, casts and arithmetic. Numbers that JSON or JavaScript cannot hold are strings there.
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { torch } from 'tensorfx'
import type { DType, Tensor } from 'tensorfx'

/** The dtypes, as the goldens list them. */
export const DTYPES: readonly DType[] = ['bool', 'uint8', 'int8', 'int16', 'int32', 'int64', 'float16', 'bfloat16', 'float32', 'float64']

export const readGolden = <T>(name: string): T =>
  JSON.parse(readFileSync(fileURLToPath(new URL(`../goldens/dtypes/${name}.json`, import.meta.url)), 'utf8')) as T

export type StoredValue = number | string | boolean

const SPECIAL: Readonly<Record<string, number>> = { nan: NaN, inf: Infinity, '-inf': -Infinity }

/** A stored value: large integers are strings. */
export const valueOf = (stored: StoredValue): number | bigint => (typeof stored === 'string' ? (SPECIAL[stored] ?? BigInt(stored)) : Number(stored))

/** A tensor of stored values. */
export const tensorOf = (values: readonly StoredValue[], dtype: DType): Tensor => torch.tensor(values.map(valueOf), { dtype })

/** The values of a tensor: bigints for int64, so that nothing is lost. */
export const exactly = (t: Tensor): (number | bigint)[] => (t.dtype === 'int64' ? [...t.toBigIntArray()] : [...t.toTypedArray()])

/** Stored values as {@link exactly} gives those of a tensor. */
export const expectedOf = (values: readonly StoredValue[], dtype: DType): (number | bigint)[] =>
  values.map(valueOf).map((value) => (dtype === 'int64' ? BigInt(value) : Number(value)))
