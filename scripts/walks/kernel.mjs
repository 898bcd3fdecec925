// The first call of an operator, which compiles its kernel.
import { torch } from 'tensorfx'

torch.sigmoid(torch.randn([8]))
