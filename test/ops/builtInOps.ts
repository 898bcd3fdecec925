// The operators of tensorfx itself. The table also has those that other tests of the same process register.
import { allOps } from 'tensorfx/ops'
import type { OpDef } from 'tensorfx/dispatch'

export const builtInOps = (): readonly OpDef[] => allOps().filter(({ qualname }) => /^torch\.(?!ops\.(?!tensorfx\.))/.test(qualname))
