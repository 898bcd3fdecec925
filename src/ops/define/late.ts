// Operators that others call only in some cases, and that may be in a group which the program has not loaded: they are looked up in the table at the call, so that the group of the
// caller does not load theirs.
import { UnsupportedError } from '../../errors/index.ts'
import { missingTarget } from '../../protocol/index.ts'
import type { OpFunction } from './declaration.ts'
import { opByName } from './table.ts'

/** The registered operator with that qualified name. `F` is its type, by `import type`. Throws UnsupportedError, which names the import, if its group is not loaded. */
export function lateOperator<F extends OpFunction>(qualname: F['op']['qualname']): F
export function lateOperator(qualname: string): OpFunction['op']['fn'] {
  const op = opByName(qualname)
  if (op === undefined) throw new UnsupportedError(`this call needs the operator '${qualname}', which is not loaded; ${missingTarget(qualname)}.`)
  return op.fn
}
