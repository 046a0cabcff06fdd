import unittest, io
class T(unittest.TestCase):
    def test_ok(self): self.assertEqual(1 + 1, 2)
    def test_bad(self): self.assertIn(5, [1])
    @unittest.skip("later")
    def test_skip(self): pass
r = unittest.TextTestRunner(stream=io.StringIO()).run(unittest.defaultTestLoader.loadTestsFromTestCase(T))
print(r.testsRun, len(r.failures), len(r.skipped), r.wasSuccessful())
