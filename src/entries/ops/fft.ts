// tensorfx/ops/fft: for programs on tensorfx/core, Fourier transforms, and the complex numbers that they are made of.
import { installGroup } from '../../install/operators.ts'
import { installComplex } from '../../ops/complex/handler.ts'
import { operators as complexOperators } from '../../ops/generated/groups/complex.ts'
import { operators } from '../../ops/generated/groups/fft.ts'

installGroup([...complexOperators, ...operators])
installComplex()
