// Outside a component: the scripted one of `longhaul-sdk/testing`.
import { current } from "../fakes.js";
export default current("graph");
