"""How the analysis is started and fed; never what it computes, which is panda_spark's matter."""
