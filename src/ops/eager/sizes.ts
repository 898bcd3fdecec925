// Size parameters of kernels that take many of them.
import { sizeParam } from '../../kernels/index.ts'
import type { SizeParam } from '../../kernels/index.ts'
import { InternalError } from '../../errors/index.ts'

const hasAll = <N extends string>(record: Readonly<Record<string, SizeParam>>, names: readonly N[]): record is Readonly<Record<N, SizeParam>> =>
  names.every((name) => Object.hasOwn(record, name))

/** One size parameter per name. `Object.values` of the result lists them in the order of the names. */
export function sizeParams<const N extends string>(names: readonly N[]): Readonly<Record<N, SizeParam>> {
  const record = Object.fromEntries(names.map((name) => [name, sizeParam(name)]))
  if (!hasAll(record, names)) throw new InternalError(`the size parameters ${names.join(', ')} are not unique`)
  return record
}
