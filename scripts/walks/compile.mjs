// A compiled function is called as often as the argument says: the first call compiles, the second runs the code.
import { torch } from 'tensorfx'
import { compile } from 'tensorfx/compile'

const f = compile((x) => torch.relu(x).add(1))
for (let i = 0; i < Number(process.argv[2]); i++) f(torch.ones([4]))
